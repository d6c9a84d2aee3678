"""`specverdict readme`: write the verdict table and picture into the README."""

import argparse

from runners.commands import arguments
from runners.core import paths
from runners.profiles.load import load
from runners.report import readme


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_runs(parser, "published")


def main(args: argparse.Namespace) -> int:
    """Rewrite the part of the README between its two markers, and book/images/verdict.svg."""
    return readme.write(load(args.profile), paths.runs_root(args.runs))
