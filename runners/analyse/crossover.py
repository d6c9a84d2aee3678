"""Where speculation stops paying: the points of each engine, its step model, and the concurrency where AL = r.

Crossover: the concurrency from which on a step costs more plain steps (r) than it yields tokens (AL).
"""

import numpy as np
import pandas as pd

from runners.analyse import reported, step_model, step_points
from runners.analyse.step_model import Coefficients, Model
from runners.profiles import load
from runners.profiles.profile import Profile

GRID = np.geomspace(1, 64, 49)  # requests that decode at once, on the map


def drafters(profile: str) -> dict[str, str]:
    """configuration -> the drafter that its own was derived from in the end; empty without such a profile here.

    A drafter made worse on purpose costs what its source costs, so the step model takes them for one.
    """
    plan = load.load_if_known(profile)
    return drafters_of(plan) if plan else {}


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
    """engine -> its points (step_points.points). groups: `drafters`."""
    parts = cells.groupby("engine") if len(cells) else ()
    return {engine: step_points.points(part, requests, groups) for engine, part in parts}


def errors(scores: pd.DataFrame) -> tuple[float, float]:
    """(median, worst) relative error of forecasts (column error), without sign; NaN without any."""
    sizes = scores["error"].abs().astype(float)
    return (float(sizes.median()), float(sizes.max())) if len(sizes) else (np.nan, np.nan)


def drafted(fitted: step_model.Models) -> pd.DataFrame:
    """The measured speculative points of every engine, for the map."""
    parts = [points[points.k > 0] for _, points in fitted.values()]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=step_points.COLUMNS)


def curves(fitted: step_model.Models) -> pd.DataFrame:
    """Break-even accept length (r) over running requests: engine, drafter, k, batch, break_even with _lo, _hi.

    Context: the mean over the engine's points.
    """
    columns = ["engine", "drafter", "k", "batch", "break_even", "break_even_lo", "break_even_hi"]
    rows = []
    for engine, (model, points) in fitted.items():
        context = points.context.mean()
        for drafter, own in points[points.k > 0].groupby("drafter"):
            for k in sorted(set(own.k)):
                lo, hi = model.break_even_interval(k, GRID, context, drafter)
                r = model.break_even(k, GRID, context, drafter)
                values = [engine, drafter, int(k), GRID, r, lo, hi]
                rows.append(pd.DataFrame(dict(zip(columns, values, strict=True))))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=columns)


def crossover(model: Model, k: float, context: float, length: float, drafter: str) -> tuple[float | None, ...]:
    """(point, low, high) of the concurrency where speculation stops paying, at accept length `length`.

    The last batch of GRID that pays; 0 where none does, None where it still pays at the grid's end. Low and high: the
    95% over the refits.
    """

    def last_paying(coefficients: Coefficients) -> float:
        r = coefficients.break_even(k, GRID, context, drafter)
        paying = np.flatnonzero(length > r)
        if not len(paying):
            return 0.0
        return np.inf if paying[-1] == len(GRID) - 1 else float(GRID[paying[-1]])

    draws = np.array([last_paying(refit) for refit in model.refits])
    low, high = np.quantile(draws, [0.025, 0.975], method="nearest")
    return tuple(None if np.isinf(v) else v for v in (last_paying(model.coefficients), low, high))


def case_points() -> pd.DataFrame:
    """The case's drafters on the map: what, kind, accept_length, step_cost (r at C = 1). Reported, not measured."""
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
