"""What the chapter Where speculation pays shows, read and fitted once."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import crossover, forecasts, kept_out, results, step_model, sweeps
from runners.claims import named_values, next_steps, reproduction
from runners.core import paths
from runners.profiles import load as profiles_load
from runners.profiles.latency import LatencyLimits
from runners.report import borrowed, examples


@dataclass(frozen=True)
class Data:
    """What the chapter shows."""

    cells: pd.DataFrame
    every_load: pd.DataFrame  # `cells`, and those of open loops
    requests: pd.DataFrame
    pairs: pd.DataFrame  # examples.beside_base
    models: step_model.Models  # the step model of each engine, with its points
    kept_out: pd.DataFrame  # kept_out.COLUMNS and runs: forecasts of cells that the models had not seen
    ahead: pd.DataFrame  # forecasts made before measuring, of the profile and of its sweeps
    swept: sweeps.Sweeps
    swept_mark: str  # borrowed.Source
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
    swept, plan = sweeps.Sweeps(runs, profile), profiles_load.load_if_known(profile)
    shown = borrowed.swept(runs, profile)
    return Data(
        cells,
        results.cells(runs, profile, loads=("closed", "open")),
        requests,
        examples.beside_base(cells),
        step_model.models(measured),
        _kept_out(runs, profile, measured, swept),
        pd.concat([forecasts.scored(runs, name) for name in (profile, swept.profile)], ignore_index=True),
        sweeps.Sweeps(shown.runs, shown.profile) if shown.mark else swept,
        shown.mark,
        plan.workload.latency_limits if plan else None,
        next_steps.ranked(named_values.of(runs, profile)),
    )


def _kept_out(runs: str | Path, profile: str, measured: dict[str, pd.DataFrame], swept: sweeps.Sweeps) -> pd.DataFrame:
    """Kept-out cells of these runs, of their sweeps and, for the published ones, of the same profile elsewhere."""
    parts = {profile: kept_out.of_engines(measured), swept.profile: kept_out.of_engines(swept.points)}
    parts[f"{swept.profile} from {profile}"] = kept_out.of_other_runs(swept.points, measured)
    if paths.runs_root(runs) == paths.PUBLISHED_RUNS:
        for side in reproduction.sides(runs, profile)[1:]:
            parts[f"{profile}, {side.name}"] = kept_out.of_engines(side.points)
    filled = [part.assign(runs=name) for name, part in parts.items() if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=[*kept_out.COLUMNS, "runs"])
