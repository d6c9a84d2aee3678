"""`specverdict forecast`: forecast the speed-up of what is not measured yet; the book scores it afterwards."""

import argparse
from pathlib import Path

from runners.analyse.forecasts import POINT, read, write
from runners.commands import arguments
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.profiles.profile import Profile


def show(profile: Profile, preset: str | None, runs: Path) -> int:
    """Write the new forecasts and print them; UserError when the measured cells allow none."""
    before = len(read(runs, profile.name))
    if not write(profile, preset, runs):
        raise UserError(
            f"Nothing to forecast for {profile.name}: every speculative point is measured, or the step cost of its "
            "engine and the acceptance of its drafter are not measured yet. Measure one more configuration first."
        )
    made = read(runs, profile.name).iloc[before:]
    print(made[[*POINT, "tokens_per_step", "speed_up", "speed_up_lo", "speed_up_hi", "length_from"]].to_string())
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_preset(parser)
    arguments.add_runs(parser, "local")


def main(args: argparse.Namespace) -> int:
    """Write and print forecasts."""
    return show(load(args.profile), args.preset, paths.runs_root(args.runs))
