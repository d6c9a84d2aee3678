"""`specverdict analyse`: execute the chapters' notebooks on existing runs; nothing is measured."""

import argparse

from runners.analyse import results
from runners.commands import arguments
from runners.core import progress
from runners.report import execute
from runners.report.book import ANALYSES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")


def main(args: argparse.Namespace) -> int:
    """Execute every chapter into <runs>/<profile>/notebooks and write the verdict beside the runs."""
    parameters = {name: {"profile": args.profile, "runs": args.runs} for name in ANALYSES}
    parameters["verdict"]["write"] = True
    with progress.span("analysis"):
        execute.execute(ANALYSES, results.home(args.runs, args.profile) / "notebooks", parameters)
    return 0
