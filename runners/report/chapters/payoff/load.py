"""What the chapter Where speculation pays shows, read and fitted once."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import crossover, forecasts, results, step_model, sweeps
from runners.claims import named_values, next_steps
from runners.profiles import load as profiles_load
from runners.profiles.latency import LatencyLimits
from runners.report import examples


@dataclass(frozen=True)
class Data:
    """What the chapter shows."""

    cells: pd.DataFrame
    every_load: pd.DataFrame  # `cells`, and those of open loops
    requests: pd.DataFrame
    pairs: pd.DataFrame  # examples.beside_base
    models: step_model.Models  # the step model of each engine, with its points
    held_out: pd.DataFrame  # speed-ups of one concurrency forecast from the others
    ahead: pd.DataFrame  # forecasts made before measuring, of the profile and of its sweeps
    swept: sweeps.Sweeps
    limits: LatencyLimits | None
    menu: pd.DataFrame  # next_steps.ranked

    @property
    def curves(self) -> pd.DataFrame:
        """Break-even accept length over running requests, for the map."""
        return crossover.curves(self.models)

    @property
    def measured(self) -> pd.DataFrame:
        """The measured speculative points, for the map."""
        return crossover.drafted(self.models)

    @property
    def case_points(self) -> pd.DataFrame:
        """The case's box: reported and published figures, nothing of it measured here."""
        return crossover.case_points()


def load(runs: str | Path, profile: str) -> Data:
    """Read a profile's runs and its sweeps, and fit the step model; empty where nothing was measured."""
    cells, requests = results.cells(runs, profile), results.requests(runs, profile)
    measured = crossover.points(cells, requests, crossover.drafters(profile))
    plan = profiles_load.load_if_known(profile)
    return Data(
        cells,
        results.cells(runs, profile, loads=("closed", "open")),
        requests,
        examples.beside_base(cells),
        step_model.models(measured),
        crossover.score(measured),
        pd.concat([forecasts.scored(runs, name) for name in (profile, sweeps.profile_of(profile))]),
        sweeps.Sweeps(runs, profile),
        plan.workload.latency_limits if plan else None,
        next_steps.ranked(named_values.of(runs, profile)),
    )
