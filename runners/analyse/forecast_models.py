"""The models that forecast a speed-up, side by side: the step model, the plain baseline, and their geometric mean.

    speed-up = AL / r        r of the forecast: the geometric mean of the r of both models

Forecasts are made with the mean because neither model alone forecasts kept-out cells as well (kept_out.py; the table
is in the chapter on where speculation pays). Their errors have different signs: the step model bends r over C as its
terms do and is too flat or too steep where an engine changes its kernels; the baseline goes straight through what was
measured and knows neither context nor prompts. Where only one of them knows the drafter that one forecasts alone.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from runners.analyse import log_linear, step_model
from runners.analyse.step_model import Model
from runners.analyse.step_points import POINT
from runners.core.errors import UserError

STEP_MODEL, LOG_LINEAR, MEAN = "step model", "log-linear", "geometric mean"
MODELS = [STEP_MODEL, LOG_LINEAR, MEAN]


@dataclass(frozen=True)
class Models:
    """Both models of one engine, fitted to the same points."""

    step: Model | None  # None with too few points
    lines: log_linear.Lines

    def know(self, drafter: str) -> bool:
        """Whether one of them knows what this drafter costs."""
        return drafter in self.lines or (self.step is not None and drafter in self.step.drafters)


def measured(points: pd.DataFrame) -> pd.DataFrame:
    """The speculative points that were measured beside their base, with r, speed_up (AL / r) and noise, the standard
    error of the speed-up (relative; NaN with one block). points: step_points.points of one engine.
    """
    rows = points[(points.k > 0) & points.plain_ms.notna()]
    r = rows.step_ms.astype(float) / rows.plain_ms.astype(float)
    return rows.assign(r=r, speed_up=rows.tokens_per_step.astype(float) / r, noise=rows.scatter.astype(float))


def fit(points: pd.DataFrame) -> Models:
    """Fit both to the points of one engine (step_points.points)."""
    try:
        step = step_model.fit(points, resamples=0)
    except UserError:
        step = None
    return Models(step, log_linear.fit(measured(points)))


def step_costs(models: Models, rows: pd.DataFrame) -> pd.DataFrame:
    """r of each speculative point by each model: POINT, then MODELS; NaN where a model does not know the drafter.

    Needs LOAD, context, drafter and tokens_per_step, nothing measured at the point itself.
    """
    rows = rows[rows.k > 0]
    table = rows[POINT].copy()
    step = models.step
    table[STEP_MODEL] = [np.nan if step is None else step_model.step_cost(step, row) for row in rows.itertuples()]
    table[LOG_LINEAR] = [
        log_linear.step_cost(models.lines, r.drafter, r.k, r.workload, r.concurrency) for r in rows.itertuples()
    ]
    return table.assign(**{MEAN: np.sqrt(table[STEP_MODEL] * table[LOG_LINEAR])}).reset_index(drop=True)


def chosen(costs: pd.DataFrame) -> pd.DataFrame:
    """model and break_even (r) of each row of `step_costs`: the mean where both models know the drafter, else the one
    that does; NaN where neither does.
    """
    one, both = costs[STEP_MODEL].fillna(costs[LOG_LINEAR]), costs[MEAN].notna()
    names = np.where(both, MEAN, np.where(costs[STEP_MODEL].notna(), STEP_MODEL, LOG_LINEAR))
    return pd.DataFrame({"model": names, "break_even": costs[MEAN].where(both, one).astype(float)}, index=costs.index)


def forecasts(models: Models, rows: pd.DataFrame) -> pd.DataFrame:
    """A speed-up for each speculative point that a model knows: POINT, speed_up, break_even (r) and model.

    rows: as `step_costs` takes them. The accept length is taken as it stands there.
    """
    costs = step_costs(models, rows)
    made = costs[POINT].join(chosen(costs)).merge(rows[[*POINT, "tokens_per_step"]], on=POINT)
    made = made.dropna(subset=["break_even"]).reset_index(drop=True)
    made = made.assign(speed_up=made.tokens_per_step.astype(float) / made.break_even)
    return made[[*POINT, "speed_up", "break_even", "model"]]


def scored(made: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """Forecasts beside what was then measured: made, then measured, measured_length, noise (`measured`) and error
    (forecast over measured - 1).
    """
    names = {"speed_up": "measured", "tokens_per_step": "measured_length", "noise": "noise"}
    later = measured(points)[[*POINT, *names]].rename(columns=names)
    both = made.merge(later, on=POINT).dropna(subset=["measured"])
    return both.assign(error=both.speed_up.astype(float) / both.measured.astype(float) - 1)
