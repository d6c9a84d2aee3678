"""Two sets of runs, ratio by ratio: do they differ by more than their own noise?

Two machines, or one machine twice (a fresh run against the published one: does the report reproduce?). Speeds of two
machines are not compared: only ratios to each one's own base are, which is what a verdict rests on.

The test is one of the difference of two log ratios, with the errors of inference.py: variances add. What a campaign
adds to a ratio beyond its starts is known where a side holds two campaigns or more (`campaign_error`); where no side
does, the test compares two campaigns as if they had no luck of their own, and `judged` says so.
"""

import numpy as np
import pandas as pd

from runners.analyse import inference, multiple_comparisons
from runners.analyse.inference import Estimate

RATIOS = {
    "speed_up": "throughput / base",
    "stream_speed_up": "stream speed / base",
    "step_cost": "step-cost ratio r",
}
POINT = ["configuration", "workload", "concurrency"]
AGREE, DIFFER, UNDECIDED = "agree", "differ", "undecided"
WITH_CAMPAIGNS, WITHOUT = "with the variance of campaigns", "the variance of campaigns is not known"
ERROR = 0.05  # a test's, on both sides together: so many differ by chance alone
COLUMNS = [*POINT, "what", "a", "b", "b_over_a", "p", "q", "outcome", "judged", "contradiction"]


def pairs(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row a point and ratio that both measured; first, second: step_cost.step_costs.

    Columns: POINT, what (of RATIOS, in words), a and b (lists: point, low, high), b_over_a, p (of a difference), q (p
    adjusted over all rows), outcome, judged (WITH_CAMPAIGNS or WITHOUT), contradiction (yes on one side and no on the
    other; throughput alone has such an answer). outcome: DIFFER where p is below ERROR, so that `by_chance` of the
    tested rows do without any difference; UNDECIDED where an error is not known.
    """
    both = first.merge(second, on=POINT, suffixes=("_a", "_b"))
    rows = []
    for r in both.to_dict("records"):
        for name, words in RATIOS.items():
            a, b = ([r[f"{name}{end}_{side}"] for end in ("", "_lo", "_hi")] for side in "ab")
            if pd.isna(a[0]) or pd.isna(b[0]):
                continue
            p, judged = _difference(r, name)
            outcome = UNDECIDED if np.isnan(p) else DIFFER if p < ERROR else AGREE
            answers = {r["pays_a"], r["pays_b"]} if name == "speed_up" else set()
            row = {key: r[key] for key in POINT} | {"what": words, "a": a, "b": b, "b_over_a": b[0] / a[0], "p": p}
            row |= {"contradiction": answers == {inference.YES, inference.NO}}
            rows.append(row | {"outcome": outcome, "judged": judged})
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.assign(q=multiple_comparisons.adjusted(frame["p"].astype(float)))


def by_chance(found: pd.DataFrame) -> float:
    """How many of `pairs` would differ by chance alone."""
    return ERROR * float(found["p"].notna().sum())


def _difference(row: dict, name: str) -> tuple[float, str]:
    """(p of the difference of two sides' log ratios, judged)."""
    known = [v for side in "ab" if pd.notna(v := row[f"{name}_campaign_error_{side}"])]
    parts = []
    for side in "ab":
        error, df = (float(row[f"{name}_{end}_{side}"]) for end in ("error", "df"))
        if known and row[f"n_campaigns_{side}"] < 2 and max(known) > error:
            error, df = max(known), min(float(row[f"{name}_campaign_df_{s}"]) for s in "ab" if _has(row, name, s))
        parts.append(Estimate(float(np.log(row[f"{name}_{side}"])), error, df))
    judged = WITH_CAMPAIGNS if known else WITHOUT
    return inference.total([parts[1], parts[0].inverse()]).p_value(), judged


def _has(row: dict, name: str, side: str) -> bool:
    return bool(pd.notna(row[f"{name}_campaign_error_{side}"]))
