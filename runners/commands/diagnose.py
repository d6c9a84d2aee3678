"""`specverdict diagnose`: why a drafter fails, on the terminal. The rest is in drafter/diagnose.py and
drafter/diagnose_folders.py.
"""

import argparse
import dataclasses
import json
from pathlib import Path

from runners.commands import arguments
from runners.core import paths
from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.core.progress import quiet, say
from runners.drafter import diagnose_folders, measured
from runners.drafter.diagnose import Diagnosis, diagnose
from runners.drafter.faults import FAULTS
from runners.drafter.layouts import Layout
from runners.drafter.measured import Measured
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.readers import sources, texts
from runners.readers.findings import findings as server_findings
from runners.readers.together import by_server

MOST_DRAFTS = 16


def show(profile: Profile, configuration: str, runs: Path, as_json: bool = False) -> int:
    """Print what is found of a profile's configuration; returns 0."""
    found = diagnose(profile, configuration, runs, say=quiet)
    return _show(found, f"{configuration}: drafter {profile.configuration(configuration).drafter or 'none'}", as_json)


def show_folders(args: argparse.Namespace) -> int:
    """Print what is found of a drafter's folder beside its target's; returns 0."""
    target, head = diagnose_folders.look_at(Path(args.target), Path(args.drafter) if args.drafter else None)
    told, seen = _told(args, head)
    k = None if args.no_replay else args.k
    found = diagnose_folders.diagnose(target, head, seen, args.context_length, k, quiet if args.json else say)
    found.told = told
    place = head.folder.name if head.folder else "-"
    return _show(found, f"{place}: {head.title}, method {head.method}, for target {target.folder.name}", args.json)


def _told(args: argparse.Namespace, head: Layout) -> tuple[list[Finding], list[Measured]]:
    """(what a server's texts say is wrong, the acceptance that they hold). UserError for a file that is none."""
    given = [*(args.log or []), *(args.metrics or [])]
    findings: list[Finding] = []
    seen: list[Measured] = []
    for server in by_server([texts.read(source, args.engine) for name in given for source in sources.of(name)]):
        findings += [*server_findings(server), *diagnose_folders.other_method(head, server)]
        one = measured.of_server(server)
        if one is None:
            findings.append(Finding("note", f"{server.engine}: these texts hold no acceptance of a drafter", ""))
        else:
            seen.append(one)
    return findings, seen


def _show(found: Diagnosis, title: str, as_json: bool) -> int:
    if as_json:
        kept = dataclasses.asdict(found)
        # One figure an answer, with gaps that JSON has no word for: only what they amount to is shown.
        kept["what_if"] = {words: row["accept_length"] for words, row in found.what_if.items()}
        print(json.dumps({"drafter": title} | kept, indent=1))
        return 0
    print(f"{title}\n\nFiles")
    _show_findings(found.findings)
    if not found.findings:
        print("  no findings")
    print("\nMeasured")
    for one in found.measured:
        print(f"  {one.words} ({one.source})")
    if not found.measured:
        print("  not measured here")
    _show_findings(found.told)
    print("\nReplayed on the target's own answers")
    for words, row in found.what_if.items():
        print(f"  {row['accept_length']:.3f}  {words}")
    if not found.what_if:
        print(f"  not replayed: {found.not_replayed}")
    _show_likely(found)
    return 0


def _show_findings(findings: list[Finding]) -> None:
    for f in findings:
        print(f"  {f.level:8} {f.text}" + (f"\n           fix: {f.fix}" if f.fix else ""))


def _show_likely(found: Diagnosis) -> None:
    print("\nLikely faults, the most likely first")
    for number, one in enumerate(found.likely, start=1):
        gain = f" (undoing it gains {one.gain:.2f})" if one.gain else ""
        print(f"  {number}. {FAULTS[one.name].what}{gain}")
        for line in one.evidence:
            print(f"     - {line}")
        print(f"     next: {FAULTS[one.name].next_step}")
    if not found.likely:
        print("  none found")


def _drafts(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST_DRAFTS:
        raise argparse.ArgumentTypeError(f"must be an integer from 1 to {MOST_DRAFTS}")
    return int(text)


def _positions(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError("must be a number of tokens above 0")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--configuration", help="one of the profile that drafts")
    parser.add_argument("--target", help="in place of a configuration: the target's Hugging Face folder")
    parser.add_argument("--drafter", help="the drafter's folder; left out: the target's own MTP layers")
    parser.add_argument("--log", action="append", help="a log of an engine that served the two; may be repeated")
    parser.add_argument("--metrics", action="append", help="a saved /metrics text of it; may be repeated")
    parser.add_argument("--engine", help="whose log and metrics they are, if that is not recognised")
    parser.add_argument("--k", type=_drafts, default=3, help="draft tokens of a replayed chain (default: 3)")
    parser.add_argument("--context-length", type=_positions, help="tokens of the longest request")
    parser.add_argument("--no-replay", action="store_true", help="files and measured acceptance only: seconds")
    parser.add_argument("--json", action="store_true", help="everything that was found, as JSON")


def main(args: argparse.Namespace) -> int:
    if bool(args.configuration) == bool(args.target):
        raise UserError("Give either --target DIR with --drafter DIR, or --configuration NAME of a profile.")
    if args.target:
        return show_folders(args)
    if args.drafter or args.log or args.metrics:
        raise UserError("--drafter, --log and --metrics go with --target; a configuration has its own in its runs.")
    return show(load(args.profile), args.configuration, paths.runs_root(args.runs), args.json)
