"""`specverdict diagnose`: why a drafter fails, on the terminal (drafter/diagnose.py finds out)."""

import argparse
from pathlib import Path

from runners.commands import arguments
from runners.core import paths
from runners.core.acceptance_math import accept_length
from runners.drafter.diagnose import diagnose
from runners.drafter.faults import FAULTS
from runners.profiles.load import load
from runners.profiles.profile import Profile


def show(profile: Profile, configuration: str, runs: Path) -> int:
    """Print the files' findings, the measured and the replayed accept length, and the likely faults; returns 0."""
    found = diagnose(profile, configuration, runs, say=lambda _: None)
    print(f"{configuration}: drafter {profile.configuration(configuration).drafter}\n\nFiles")
    for f in found.findings:
        print(f"  {f.level:8} {f.text}" + (f"\n           fix: {f.fix}" if f.fix else ""))
    if not found.findings:
        print("  no findings")
    print("\nMeasured")
    if found.measured:
        m = found.measured
        survival = ", ".join(f"{s:.3f}" for s in m["survival"])
        length = accept_length(m["steps"], m["accepted"])
        print(f"  accept length {length:.3f} over {m['steps']:,} steps; survival {survival}")
    else:
        print("  not measured here")
    print("\nReplayed on held-out answers")
    for words, row in found.what_if.items():
        print(f"  {row['accept_length']:.3f}  {words}")
    if not found.what_if:
        print("  not replayed: this needs data/corpus/answers.parquet and the reference environment")
    print("\nLikely faults, the most likely first")
    for number, one in enumerate(found.likely, start=1):
        gain = f" (undoing it gains {one.gain:.2f})" if one.gain else ""
        print(f"  {number}. {FAULTS[one.name].what}{gain}")
        for line in one.evidence:
            print(f"     - {line}")
        print(f"     next: {FAULTS[one.name].next_step}")
    if not found.likely:
        print("  none found")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--configuration", required=True, help="one with an EAGLE-3 drafter")


def main(args: argparse.Namespace) -> int:
    return show(load(args.profile), args.configuration, paths.runs_root(args.runs))
