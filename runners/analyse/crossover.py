"""Where speculation pays: the step model of each engine, its score, crossover concurrencies, and the case's own map."""

import numpy as np
import pandas as pd

from runners.analyse import reported, step_model, step_points
from runners.analyse.step_model import Coefficients, Model
from runners.core.errors import UserError
from runners.profiles import load
from runners.profiles.profile import Profile

GRID = np.geomspace(1, 64, 49)  # running requests of the map
HELD_OUT = 4  # the concurrency kept out of the fit to score it


Found = dict[str, tuple[Model, pd.DataFrame]]  # engine -> (its model, its points)


def drafters(profile: str) -> dict[str, str]:
    """configuration -> the drafter it was derived from in the end: broken variants cost what their source costs."""
    found = load.load_if_known(profile)
    return drafters_of(found) if found else {}


def drafters_of(profile: Profile) -> dict[str, str]:
    """`drafters` of a profile at hand."""
    groups = {}
    for name, c in profile.configurations.items():
        drafter = c.drafter
        while drafter and profile.drafters[drafter].source:
            drafter = profile.drafters[drafter].source
        if drafter:
            groups[name] = drafter
    return groups


def points(
    cells: pd.DataFrame, requests: pd.DataFrame, groups: dict[str, str] | None = None
) -> dict[str, pd.DataFrame]:
    """engine -> its points (step_points.points)."""
    parts = cells.groupby("engine") if len(cells) else ()
    return {engine: step_points.points(part, requests, groups) for engine, part in parts}


def models(measured: dict[str, pd.DataFrame]) -> Found:
    """engine -> (model of all its points, the points), from `points`; engines with too few points are left out."""
    found = {}
    for engine, rows in measured.items():
        try:
            found[engine] = (step_model.fit(rows), step_model.usable(rows))
        except UserError:
            continue
    return found


def score(measured: dict[str, pd.DataFrame], concurrency: int = HELD_OUT) -> pd.DataFrame:
    """Speed-ups at one concurrency forecast from the others' points alone, beside the measured ones."""
    parts = []
    for rows in measured.values():
        try:
            parts.append(step_model.held_out(rows, concurrency)[1])
        except UserError:
            continue
    columns = [*step_points.POINT, "speed_up", "error"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def errors(scores: pd.DataFrame) -> tuple[float, float]:
    """(median, worst) relative error of forecasts; NaN without any."""
    apart = scores["error"].abs().astype(float)
    return (float(apart.median()), float(apart.max())) if len(apart) else (np.nan, np.nan)


def drafted(found: Found) -> pd.DataFrame:
    """The measured speculative points of every engine, for the map."""
    parts = [points[points.k > 0] for _, points in found.values()]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=step_points.COLUMNS)


def curves(found: Found) -> pd.DataFrame:
    """Break-even accept length over running requests: engine, drafter, k, batch, break_even with _lo, _hi.

    Context: the mean over the points.
    """
    columns = ["engine", "drafter", "k", "batch", "break_even", "break_even_lo", "break_even_hi"]
    rows = []
    for engine, (model, points) in found.items():
        context = points.context.mean()
        for drafter, own in points[points.k > 0].groupby("drafter"):
            for k in sorted(set(own.k)):
                lo, hi = model.break_even_interval(k, GRID, context, drafter)
                r = model.break_even(k, GRID, context, drafter)
                values = [engine, drafter, int(k), GRID, r, lo, hi]
                rows.append(pd.DataFrame(dict(zip(columns, values, strict=True))))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=columns)


def crossover(model: Model, k: float, context: float, length: float, drafter: str) -> tuple[float | None, ...]:
    """(point, low, high) of the concurrency where speculation stops paying; None where it pays to the grid's end.

    It is the last running batch of the grid that pays; 0 where none does. Low and high over the refits.
    """

    def one(coefficients: Coefficients) -> float:
        r = coefficients.break_even(k, GRID, context, drafter)
        paying = np.flatnonzero(length > r)
        if not len(paying):
            return 0.0
        return np.inf if paying[-1] == len(GRID) - 1 else float(GRID[paying[-1]])

    draws = np.array([one(refit) for refit in model.refits])
    low, high = np.quantile(draws, [0.025, 0.975], method="nearest")
    return tuple(None if np.isinf(v) else v for v in (one(model.coefficients), low, high))


def case_points() -> pd.DataFrame:
    """The case's box: reported accept lengths and the step-cost ratio of its single stream; reported, not measured."""
    rows = reported.step_costs(reported.case())
    one = rows[rows.concurrency == 1]
    points = one.assign(kind="reported by the case", what=one.configuration)[
        ["what", "kind", "accept_length", "step_cost"]
    ]
    public = reported.published_lengths()
    names = [f"{r.drafter} ({r.task})" for r in public.itertuples()]
    published = pd.DataFrame(
        {"what": names, "kind": "published, other settings", "accept_length": public.accept_length, "step_cost": np.nan}
    )
    return pd.concat([points, published], ignore_index=True)
