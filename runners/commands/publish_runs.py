"""`specverdict publish`: copy local runs to data/runs, to be committed."""

import argparse

from runners.commands import arguments
from runners.core import paths
from runners.profiles.load import load
from runners.report import publish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--machine", metavar="NAME", help="keep them beside the published ones: data/elsewhere/NAME")


def main(args: argparse.Namespace) -> int:
    """Copy and analyse, or keep them as another machine's."""
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    if args.machine is not None:
        return publish.elsewhere(profile, runs, args.machine)
    return publish.publish(profile, runs)
