"""`specverdict book`: build the book from existing runs; nothing is measured."""

import argparse

from runners.commands import arguments
from runners.core import paths
from runners.profiles.load import load
from runners.report import archive, book


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    parser.add_argument("--runs", default="published", help="published, local, a folder, or an archive of `share`")


def main(args: argparse.Namespace) -> int:
    """Build the book and print the path of its first page. An archive brings its own profile."""
    runs = archive.runs_root(args.runs)
    if archive.is_archive(args.runs):
        index = book.build(runs, archive.profile_of(runs), paths.BUILD / "book")
    else:
        profile = load(args.profile)
        index = book.build(runs, profile.name, book.build_folder(profile.simulated))
    print(f"book: {index}")
    return 0
