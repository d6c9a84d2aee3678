"""`specverdict publish`: copy local runs to data/runs, where they can be committed."""

import argparse

from runners.commands import arguments
from runners.core import paths
from runners.profiles.load import load
from runners.report import publish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--machine", metavar="NAME", help="publish them as another machine's: data/elsewhere/NAME")


def main(args: argparse.Namespace) -> int:
    """Copy the runs and run the chapters on them; with --machine, keep them as another machine's."""
    profile, runs = load(args.profile), paths.runs_root(args.runs)
    if args.machine is not None:
        return publish.elsewhere(profile, runs, args.machine)
    return publish.publish(profile, runs)
