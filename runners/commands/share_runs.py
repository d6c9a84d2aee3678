"""`specverdict share`: pack a profile's runs into one archive that another person's `make book` reads."""

import argparse
from pathlib import Path

from runners.commands import arguments
from runners.core import paths
from runners.profiles.load import load
from runners.report import archive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--out", help="FILE.tar.gz (default: PROFILE-runs.tar.gz)")


def main(args: argparse.Namespace) -> int:
    """Write the archive and print how another person reads it."""
    profile = load(args.profile)
    out = archive.share(profile, paths.runs_root(args.runs), Path(args.out or f"{profile.name}-runs.tar.gz"))
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB; another person reads it with: make book RUNS={out.name}")
    return 0
