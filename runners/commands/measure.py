"""`specverdict measure`: measure configurations beside their bases; print their figures."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from runners.analyse import looks, results
from runners.commands import arguments
from runners.core import paths
from runners.core.errors import UserError
from runners.measure import campaign
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.report.chapters.run_campaign import campaign_sentence
from runners.report.chapters.verdict import terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_preset(parser)
    arguments.add_runs(parser, "local")
    arguments.add_minutes(parser)
    arguments.add_more(parser)
    parser.add_argument(
        "--configuration", required=True, action="append", help="a name from the profile; may be repeated"
    )


def measure(
    profile: Profile,
    preset: str | None,
    runs: Path,
    names: list[str],
    seconds: float | None,
    more: bool = False,
    whole: bool = False,
) -> int:
    """Measure these and their bases and print the figures; 1 where none of those that draft (of all, where none does)
    has a good cell in the campaign.

    seconds: the budget; None: the preset's minutes. whole: print the verdict of the whole profile. UserError where none
    of them could be started, with the reason.
    """
    done = campaign.run(
        profile,
        preset,
        runs,
        lambda: looks.for_campaign(runs, profile, names),
        names=names,
        seconds=seconds,
        more=more,
    )
    cells = results.cells(runs, profile.name)
    cells = cells[(cells.campaign == done.id) & cells.configuration.isin(names)]
    if cells.empty and set(names) <= set(done.failed):
        raise UserError(f"{names[0]}: {done.failed[names[0]]}")
    print(f"{campaign_sentence(done)}\n")
    shown = None if whole else _with_bases(profile, names)
    print(terminal.text(terminal.of(runs, profile.name), only=shown))
    reasons = {name: _why(cells[cells.configuration == name], done.failed.get(name)) for name in names}
    empty = {name: why for name, why in reasons.items() if why}
    for name, why in empty.items():
        print(f"{name} has no good cell in this campaign: {why}", file=sys.stderr)
    judged = [name for name in names if profile.drafts(name)] or names
    return 1 if set(judged) <= set(empty) else 0


def _with_bases(profile: Profile, names: Sequence[str]) -> list[str]:
    """What is shown: each base above what is compared with it."""
    return list(dict.fromkeys(side for name in names for side in (profile.base_of(name) or name, name)))


def _why(cells: pd.DataFrame, failure: str | None) -> str:
    """Why a configuration has no good cell among these of its own; "" where it has one."""
    if not results.ok(cells).empty:
        return ""
    if not cells.empty:
        return f"all {len(cells)} are void, for example because {cells.reasons.iloc[-1][0]}"
    return failure or "there was no time for any; give it more `--minutes`"


def main(args: argparse.Namespace) -> int:
    """Measure and print."""
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    seconds = args.minutes * 60 if args.minutes else None
    return measure(profile, args.preset, runs, args.configuration, seconds, args.more)
