"""`specverdict preflight`: what would fail, looked at in seconds, before a long load begins.

Model folder, drafter, memory, GPUs and their paths, ports, servers that run already, engine and its version, SGLang's
patch, the command line by the engine's own parser, prompts, earlier runs. Files, ports and command lines are those of
the plan and of the start itself (serve/planned_start.py). It says what it could not check here. Nothing is started,
made or fetched.
"""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path

from runners.commands import arguments
from runners.commands.preflight import command_line, configuration, ledgers, machine, target, workload
from runners.core import paths
from runners.core.errors import UserError
from runners.core.finding import LEVELS, Finding
from runners.profiles.load import load
from runners.profiles.profile import Profile


def check(profile: Profile, names: list[str] | None = None, runs: Path = paths.LOCAL_RUNS) -> dict[str, list[Finding]]:
    """Findings of the box, target, prompts and earlier runs ("target", "machine", "workload", "runs") and of each
    configuration, blockers first.
    """
    found = {
        "target": _told(target.check(profile)),
        "machine": _told(machine.check(profile, names)),
        "workload": _told(workload.check(profile)),
        "runs": _told(ledgers.check(profile, runs)),
    }
    parsed = command_line.check(profile, names)
    for name in names or profile.configurations:
        found[name] = [*_told(configuration.check(profile, name)), *parsed.get(name, [])]
    return {place: sorted(rows, key=lambda f: LEVELS.index(f.level)) for place, rows in found.items()}


def _told(findings: Iterable[Finding]) -> list[Finding]:
    """All findings; an error that ends them, which would end the next command too, is one of them."""
    found: list[Finding] = []
    try:
        for finding in findings:
            found.append(finding)
    except UserError as error:
        found.append(Finding("blocker", str(error)))
    return found


def blockers(found: dict[str, list[Finding]]) -> int:
    """How many findings would stop the next command."""
    return sum(f.level == "blocker" for findings in found.values() for f in findings)


def lines(found: dict[str, list[Finding]], least: str = "note") -> list[str]:
    """The findings by place, those of level `least` or worse; a place without any says so where all are asked for."""
    told = []
    for place, findings in found.items():
        shown = [f for f in findings if LEVELS.index(f.level) <= LEVELS.index(least)]
        if not shown and least != "note":
            continue
        told.append(place)
        for f in shown:
            told.append(f"  {f.level:8} {f.text}")
            if f.fix and f.level != "note":
                told.append(f"           fix: {f.fix}")
        if not shown:
            told.append("  nothing to remark")
    return told


def show(profile: Profile, names: list[str] | None = None, runs: Path = paths.LOCAL_RUNS) -> int:
    """Print the findings; exit code 1 when there is a blocker."""
    began = time.monotonic()
    for name in names or []:
        profile.configuration(name)
    found = check(profile, names, runs)
    print("\n".join(lines(found)))
    print(f"\n{blockers(found)} blockers; looked at in {time.monotonic() - began:.1f} s, nothing was started")
    return 1 if blockers(found) else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--configuration", action="append", help="only these")


def main(args: argparse.Namespace) -> int:
    """Print the findings."""
    return show(load(args.profile), args.configuration, paths.runs_root(args.runs))
