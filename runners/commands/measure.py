"""`specverdict measure`: measure the missing cells of one configuration."""

import argparse

from runners.commands import arguments
from runners.core import paths
from runners.measure import measure_configuration
from runners.profiles.load import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_preset(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--configuration", required=True, help="a name from the profile")
    parser.add_argument("--round", type=int, help="only this server start, from 0 (default: all)")


def main(args: argparse.Namespace) -> int:
    """Measure and print the outcome; UserError when the engine cannot be installed or started."""
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    outcome = measure_configuration.configuration(
        profile, args.configuration, args.preset, runs, args.round, strict=True
    )
    print(f"{args.configuration}: {outcome.status}" + (f": {outcome.reason}" if outcome.reason else ""))
    return 0
