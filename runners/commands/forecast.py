"""`specverdict forecast`: forecast the speed-up of what is not measured yet; the book scores it after."""

import argparse
from pathlib import Path

from runners.analyse.forecasts import PLACE, read, write
from runners.commands import arguments
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.profiles.profile import Profile


def show(profile: Profile, depth: str | None, runs: Path) -> int:
    """`specverdict forecast`: write them and print them; UserError when nothing measured tells any."""
    before = len(read(runs, profile.name))
    if not write(profile, depth, runs):
        raise UserError(
            f"Nothing to forecast for {profile.name}: every speculative point is measured, or no cells tell its "
            "engine's step cost and its drafter's acceptance yet."
        )
    made = read(runs, profile.name).iloc[before:]
    print(made[[*PLACE, "tokens_per_step", "speed_up", "speed_up_lo", "speed_up_hi", "length_from"]].to_string())
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    arguments.add_depth(parser)
    arguments.add_runs(parser, "local")


def main(args: argparse.Namespace) -> int:
    return show(load(args.profile), args.depth, paths.runs_root(args.runs))
