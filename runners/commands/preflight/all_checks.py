"""`specverdict preflight`: what would fail, looked at in seconds, before a long load begins.

Model folder, drafter, memory, GPUs and their paths, port, engine and its version, SGLang's patch, the command line
by the engine's own parser. It says what it could not check here. Nothing is started, made or fetched.
"""

import argparse
import time

from runners.commands import arguments
from runners.commands.preflight import command_line, configuration, machine, target
from runners.core.finding import LEVELS, Finding
from runners.profiles.load import load
from runners.profiles.profile import Profile


def check(profile: Profile, names: list[str] | None = None) -> dict[str, list[Finding]]:
    """Findings of the box and target ("target", "machine") and of each configuration, blockers first."""
    found = {"target": list(target.check(profile)), "machine": list(machine.check(profile))}
    parsed = command_line.check(profile, names)
    for name in names or profile.configurations:
        found[name] = [*configuration.check(profile, name), *parsed.get(name, [])]
    return {place: sorted(rows, key=lambda f: LEVELS.index(f.level)) for place, rows in found.items()}


def show(profile: Profile, names: list[str] | None = None) -> int:
    """Print the findings; exit code 1 when there is a blocker."""
    began = time.monotonic()
    for name in names or []:
        profile.configuration(name)
    blockers = 0
    for place, findings in check(profile, names).items():
        print(place)
        for f in findings:
            print(f"  {f.level:8} {f.text}" + (f"\n           fix: {f.fix}" if f.fix and f.level != "note" else ""))
        if not findings:
            print("  nothing to remark")
        blockers += sum(f.level == "blocker" for f in findings)
    print(f"\n{blockers} blockers; looked at in {time.monotonic() - began:.1f} s, nothing was started")
    return 1 if blockers else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    parser.add_argument("--configuration", action="append", help="only these")


def main(args: argparse.Namespace) -> int:
    return show(load(args.profile), args.configuration)
