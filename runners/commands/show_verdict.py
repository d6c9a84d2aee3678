"""`specverdict verdict`: what the ledgers say, in seconds; no notebook is executed and nothing is written."""

import argparse
import json

from runners.commands import arguments
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report.chapters.verdict import terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument(
        "--json",
        action="store_true",
        help="verdict.json's keys, with `figures` (speeds and latencies of each point, ms) and `void` (why)",
    )


def main(args: argparse.Namespace) -> int:
    """Print the verdict; UserError where nothing was measured."""
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    figures = terminal.of(runs, profile.name)
    if figures.points.empty:
        raise UserError(
            f"{args.runs} has no cells of profile {profile.name}; measure first "
            f"(`specverdict measure --profile {args.profile}`), or give other `--runs`."
        )
    if args.json:
        print(json.dumps(figures.as_json(), indent=1, ensure_ascii=False))
    else:
        print(terminal.text(figures))
    return 0
