"""`specverdict forecast`: forecast the speed-up of what is not measured yet; the book scores it afterwards."""

import argparse
from pathlib import Path

import pandas as pd

from runners.analyse import forecasts
from runners.analyse.forecasts import POINT
from runners.commands import arguments
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.report.chapters.payoff import forecasts as chapter
from runners.report.columns import interval_column

HOW_SCORED = (
    "How they are scored: a forecast counts if it was made before the first cell of its point began; of several the "
    "last one before that. Its error is forecast / measured - 1, where measured is the decode speed-up over base (AL / "
    "r), the geometric mean over blocks. Points that the model had seen, and forecasts from another machine's cells, "
    "are scored apart."
)


def show(profile: Profile, preset: str | None, runs: Path, dry_run: bool = False) -> int:
    """Print the new forecasts, store them unless `dry_run`, and say how earlier ones did.

    UserError when the measured cells allow no new one and none was scored.
    """
    made = forecasts.new(profile, preset, runs)
    scores = forecasts.scored(runs, profile.name)
    if made.empty and scores.empty:
        raise UserError(
            f"Nothing to forecast for {profile.name}: every speculative point is measured, or the step cost of its "
            "engine and the acceptance of its drafter are not measured yet. Measure one more configuration first."
        )
    if made.empty:
        print("Nothing new to forecast: every point that could be is measured, or was forecast before.")
    else:
        print(_table(made).to_string(index=False))
        if not dry_run:
            forecasts.add(profile, runs, made)
        print(f"\n{len(made)} forecasts, {'not stored' if dry_run else f'stored in {forecasts.FILE}'}.")
    print(f"\n{HOW_SCORED}\n\nScored so far:\n{chapter.ahead_sentence(scores).replace('**', '')}")
    return 0


def _table(made: pd.DataFrame) -> pd.DataFrame:
    """The forecasts for a terminal; a forecast without an interval stands alone."""
    return made[POINT].assign(
        **{
            "accept length": [f"{length:.2f}" for length in made["tokens_per_step"].astype(float)],
            "speed-up": interval_column(made, "speed_up"),
            "model": made["model"],
            "new": ["no" if seen else "yes" for seen in made["seen"]],
            "accept length from": ["synthetic" if f == forecasts.SYNTHETIC else f for f in made["length_from"]],
            "fitted to": made["fitted_to"],
        }
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_preset(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--dry-run", action="store_true", help="print the forecasts without storing them")


def main(args: argparse.Namespace) -> int:
    """Write and print forecasts."""
    return show(load(args.profile), args.preset, paths.runs_root(args.runs), args.dry_run)
