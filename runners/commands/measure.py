"""`specverdict measure`: measure one configuration."""

import argparse

from runners.commands import arguments
from runners.core import paths
from runners.measure import measure_configuration
from runners.profiles.load import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    arguments.add_depth(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--configuration", required=True, help="one of the profile's")
    parser.add_argument("--round", type=int, help="one server start of several (default: all of them)")


def main(args: argparse.Namespace) -> int:
    """Measure what is missing of one configuration; UserError when its engine cannot be installed or started."""
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    outcome = measure_configuration.configuration(
        profile, args.configuration, args.depth, runs, args.round, strict=True
    )
    print(f"{args.configuration}: {outcome.status}" + (f": {outcome.reason}" if outcome.reason else ""))
    return 0
