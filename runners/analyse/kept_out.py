"""How well a speed-up is forecast whose cells the models have not seen: each cell kept out in turn.

Two ways: all cells of one concurrency are kept out, or all of one configuration. Models are compared on the points that
all of them forecast, so that none looks better for having left out a hard one.

What a forecast errs by there is also what its interval is made of (`half_width`): no interval of the fit holds what a
model has wrong in its form.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from runners.analyse import forecast_models
from runners.analyse.forecast_models import MEAN, MODELS, Models
from runners.analyse.inference import LEVEL
from runners.analyse.step_points import POINT

CONCURRENCY, CONFIGURATION = WAYS = ("each C", "each configuration")
RUNS = "all: fitted to other runs"
COLUMNS = [*POINT, "kept", "of", "r", "noise", "tokens_per_step", *MODELS]


def costs(points: pd.DataFrame, ways: tuple[str, ...] = WAYS) -> pd.DataFrame:
    """COLUMNS: r of each speculative point of one engine as measured, and as each model says that has not seen it.

    kept, of: what was kept out (of `ways`), and which one. points: step_points.points. NaN where a model cannot say.
    """
    parts = [part for part in _parts(points) if part[0] in ways]
    return _joined([beside(forecast_models.fit(seen), out, kept, str(of)) for kept, of, seen, out in parts])


def of_engines(measured: dict[str, pd.DataFrame], ways: tuple[str, ...] = WAYS) -> pd.DataFrame:
    """`costs` of every engine. measured: engine -> its points."""
    return _joined([costs(points, ways) for points in measured.values()])


def of_other_runs(measured: dict[str, pd.DataFrame], fitted_to: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """COLUMNS: the points of some runs beside the forecasts from the points of others; accept lengths known."""
    return _joined(
        [
            beside(forecast_models.fit(fitted_to[engine]), points, RUNS, "")
            for engine, points in measured.items()
            if engine in fitted_to
        ]
    )


def beside(models: Models, points: pd.DataFrame, kept: str, of: str) -> pd.DataFrame:
    """COLUMNS: what the models say of points that they have not seen, beside what was measured."""
    there = forecast_models.measured(points)[[*POINT, "r", "noise", "tokens_per_step"]]
    made = forecast_models.step_costs(models, points).merge(there, on=POINT)
    return made.assign(kept=kept, of=of)[COLUMNS]


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=COLUMNS)


def _parts(points: pd.DataFrame) -> Iterator[tuple[str, object, pd.DataFrame, pd.DataFrame]]:
    """(what is kept out, which one, the points to fit to, the points to forecast)."""
    for concurrency in sorted(set(points.concurrency)):
        mine = points.concurrency == concurrency
        yield CONCURRENCY, concurrency, points[~mine], points[mine]
    for name in sorted(set(points.configuration[points.k > 0])):
        mine = points.configuration == name
        # The base was measured at these points: only the drafted side is new.
        yield CONFIGURATION, name, points[~mine], points[mine]


def scored(kept: pd.DataFrame) -> pd.DataFrame:
    """`costs` with the forecast that would have been made: model, speed_up, measured (speed-ups) and error (relative).

    Points that no model can say anything of are left out.
    """
    rows = kept.join(forecast_models.chosen(kept)).dropna(subset=["break_even"])
    length = rows.tokens_per_step.astype(float)
    rows = rows.assign(speed_up=length / rows.break_even, measured=length / rows.r.astype(float))
    return rows.assign(error=rows.speed_up / rows.measured - 1).reset_index(drop=True)


def compared(kept: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row a group of `costs`, paired: `by`, points, noise (median), each model's median and worst error of the
    speed-up, without sign (`<model>`, `<model>_worst`), and the share of points at which the mean is nearer than each
    of the two (`nearer_<model>`).
    """
    rows = kept.dropna(subset=MODELS)
    errors = {model: (rows.r.astype(float) / rows[model].astype(float) - 1).abs() for model in MODELS}
    rows = rows[[*by, "noise"]].assign(**errors)
    found = []
    for names, group in rows.groupby(by, sort=False):
        row = dict(zip(by, names, strict=True)) | {"points": len(group), "noise": group.noise.median()}
        for model in MODELS:
            row |= {model: group[model].median(), f"{model}_worst": group[model].max()}
        row |= {f"nearer_{model}": (group[MEAN] < group[model]).mean() for model in MODELS if model != MEAN}
        found.append(row)
    return pd.DataFrame(found)


def half_width(errors: np.ndarray, level: float = LEVEL) -> float:
    """Half of an interval for one more value like these: log errors of forecasts, of either sign. NaN with too few.

    Split conformal prediction (Vovk et al. 2005; Lei et al. 2018): the ceil((n + 1) level)-th smallest absolute error.
    It covers at least `level` where the new error could as well have been any of these. At 95% it takes 19 errors.
    """
    sizes = np.sort(np.abs(np.asarray(errors, float)))
    # The small number keeps 20 x 0.95 from becoming 19.000000000000004 and so the 20th.
    rank = math.ceil((len(sizes) + 1) * level - 1e-9)
    return float(sizes[rank - 1]) if rank <= len(sizes) else float("nan")


def coverage(errors: pd.DataFrame, level: float = LEVEL) -> tuple[int, int]:
    """(errors inside their interval, errors tried) where the interval is made without all that was kept out with them.

    errors: POINT, kept, of and log_error. Cells that were kept out together err together, so they must not vouch for
    one another, and no cell vouches for itself kept out the other way. Where the rest is too little for an interval,
    nothing is tried.
    """
    inside = tried = 0
    cells = pd.MultiIndex.from_frame(errors[["configuration", "workload", "concurrency"]])
    for _, group in errors.groupby(["kept", "of"]):
        together = errors.index.isin(group.index)
        rest = errors.log_error[~cells.isin(cells[together])]
        half = half_width(rest, level)
        if np.isfinite(half):
            inside += int((group.log_error.abs() <= half).sum())
            tried += len(group)
    return inside, tried
