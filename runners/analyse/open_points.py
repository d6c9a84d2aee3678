"""Which points are still open, and about how many more starts would decide each: where a campaign spends its time.

Quick enough to be asked after each start: it reads cells only, no requests, and resamples nothing.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from runners.analyse import comparisons, inference, multiple_comparisons, results, step_cost
from runners.analyse.blocks import Point
from runners.analyse.comparisons import Data

COLUMNS = ["configuration", "engine", "workload", "concurrency", "speed_up", "speed_up_lo", "speed_up_hi"]
COLUMNS += ["error", "df", "level", "n_starts", "n_blocks", "n_campaigns", "p", "q", "pays", "margin"]
MOST_EXPECTED = 99


def status(runs: str | Path, profile: str) -> pd.DataFrame:
    """One row (COLUMNS) a speculative point that has a good cell on both sides: `of_cells` of a profile's runs."""
    return of_cells(results.cells(runs, profile))


def of_cells(cells: pd.DataFrame, margin: float | None = None) -> pd.DataFrame:
    """As `status`. speed_up: throughput over base, with its interval at `level`; error: of its logarithm, on df degrees
    of freedom (0: not known); pays: the answer (yes, no, no difference, undecided); margin: a share, the profile's by
    default. Points with synthetic acceptance are left out: nobody serves them.
    """
    margin = step_cost.margin_of(cells) if margin is None else margin
    if "forced_accept_length" in cells:
        cells = cells[cells["forced_accept_length"].isna()]
    data, rows, found = Data(cells), [], []
    points = results.ok(cells[cells["method"] != "none"])[["configuration", "engine", "workload", "concurrency"]]
    for configuration, engine, workload, concurrency in points.drop_duplicates().itertuples(index=False):
        own = comparisons.over_base(data, Point(configuration, workload, int(concurrency)))
        if math.isnan(own.log_ratio):
            continue
        row = dict(configuration=configuration, engine=engine, workload=workload, concurrency=int(concurrency))
        row |= dict(zip(["speed_up", "speed_up_lo", "speed_up_hi"], (own.ratio, *own.interval()), strict=True))
        row |= dict(error=own.error, df=own.df, level=own.level, n_starts=own.starts, n_blocks=own.blocks)
        rows.append(row | dict(n_campaigns=own.campaigns, margin=margin))
        found.append(own)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return multiple_comparisons.answered(frame, found, margin) if rows else frame


def open_only(points: pd.DataFrame) -> pd.DataFrame:
    """The rows of `status` without an answer."""
    return points[points["pays"] == inference.UNDECIDED]


def expected_starts(point: Mapping[str, Any]) -> int | None:
    """About how many more starts would decide a point (a row of `status`), if its ratio is what it seems.

    By the normal approximation, with the noise of a start as it is known now. 0 where it is decided; 1 where the error
    is not known yet, since a second start shows it; None where more than MOST_EXPECTED would be needed.
    """
    if point["pays"] != inference.UNDECIDED:
        return 0
    made = int(point["n_starts"])
    if not point["df"] > 0:
        return 1
    reach = inference.t_quantile((1 + float(point["level"])) / 2, math.inf)
    spread = float(point["error"]) * math.sqrt(made)  # the standard deviation of one start
    at, margin = math.log(float(point["speed_up"])), float(point["margin"])
    low, high = math.log1p(-margin), math.log1p(margin)
    # How far the ratio lies from the nearest bound that its interval must leave, or must not cross.
    room = max(at - high, low - at, min(high - at, at - low))
    if room <= 0:
        return None
    total = (reach * spread / room) ** 2
    more = max(1, math.ceil(total) - made) if np.isfinite(total) else MOST_EXPECTED + 1
    return more if more <= MOST_EXPECTED else None
