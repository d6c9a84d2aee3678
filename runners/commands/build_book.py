"""`specverdict book`: build the book from existing runs; nothing is measured."""

import argparse
import shutil
from pathlib import Path

from runners.commands import analyse, arguments
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.report import archive, book
from runners.report.execute import execute


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    parser.add_argument("--runs", default="published", help="published, local, a folder, or an archive of `share`")


def shared(runs: Path) -> Profile:
    """The profile of an unpacked archive, its pages executed here: another person's notebooks are never shown, since
    what stands in their outputs would run in the reader's browser. UserError where its name is not its folder's.
    """
    name = archive.profile_of(runs)
    place = runs / name / "profile.yaml"
    profile = load(str(place))
    if profile.name != name:
        raise UserError(f"The archive's profile {profile.name} lies in a folder {name}; ask for the archive again.")
    notebooks = runs / name / "notebooks"
    shutil.rmtree(notebooks, ignore_errors=True)
    measured = [c for c in profile.configurations if (runs / name / c).is_dir()]
    execute(analyse.pages(str(place), str(runs), measured), notebooks)
    return profile


def main(args: argparse.Namespace) -> int:
    """Build the book and print the path of its first page. An archive brings its own profile."""
    runs = archive.runs_root(args.runs)
    if archive.is_archive(args.runs):
        profile, out = shared(runs), paths.BUILD / "book"
    else:
        profile = load(args.profile)
        out = book.build_folder(profile.simulated)
    print(f"book: {book.build(runs, profile.name, out)}")
    return 0
