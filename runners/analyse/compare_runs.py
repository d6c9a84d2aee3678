"""Two sets of runs, ratio by ratio: do they agree within their intervals?

Two machines, or one machine twice (a fresh run against the published one: does the report reproduce?). Speeds of two
machines are not compared: only ratios to each one's own base are, which is what a verdict rests on.
"""

import numpy as np
import pandas as pd

from runners.analyse import intervals

RATIOS = {
    "speed_up": "throughput / base",
    "stream_speed_up": "stream speed / base",
    "step_cost": "step-cost ratio r",
}
POINT = ["configuration", "workload", "concurrency"]
AGREE, DIFFER, UNDECIDED = "agree", "differ", "undecided"
BOTH, SCATTER = "both intervals", "the scatter of the other side's repeats"


def pairs(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row a point and ratio that both measured; first, second: step_cost.step_costs.

    Columns: POINT, what (of RATIOS, in words), a and b (lists: point, low, high), b_over_a, outcome, judged (by what).
    outcome: AGREE where the intervals overlap. Where one side has too few repeats for an interval of its own: AGREE if
    its point lies where the other side's repeats say that a mean of so few would fall. UNDECIDED with neither.
    """
    both = first.merge(second, on=POINT, suffixes=("_a", "_b"))
    rows = []
    for r in both.to_dict("records"):
        for name, words in RATIOS.items():
            a, b = ([r[f"{name}{end}_{side}"] for end in ("", "_lo", "_hi")] for side in "ab")
            if pd.isna(a[0]) or pd.isna(b[0]):
                continue
            outcome, judged = _outcome(r, a, b)
            row = {key: r[key] for key in POINT} | {"what": words, "a": a, "b": b, "b_over_a": b[0] / a[0]}
            rows.append(row | {"outcome": outcome, "judged": judged})
    return pd.DataFrame(rows, columns=[*POINT, "what", "a", "b", "b_over_a", "outcome", "judged"])


def _outcome(row: dict, a: list[float], b: list[float]) -> tuple[str, str]:
    """(outcome, judged) of one ratio."""
    repeated_a, repeated_b = (
        row[f"unit_{side}"] == intervals.REPEATS and pd.notna(low) for side, low in (("a", a[1]), ("b", b[1]))
    )
    if repeated_a == repeated_b:
        return _overlap(a, b), BOTH
    if repeated_a:
        return _within_scatter(a, row["n_repeats_a"], b[0], row["n_repeats_b"]), SCATTER
    return _within_scatter(b, row["n_repeats_b"], a[0], row["n_repeats_a"]), SCATTER


def _overlap(a: list[float], b: list[float]) -> str:
    if any(pd.isna(x) for x in (*a, *b)):
        return UNDECIDED
    return AGREE if a[1] <= b[2] and b[1] <= a[2] else DIFFER


def _within_scatter(known: list[float], n: int, other: float, m: int) -> str:
    """Does a mean of m repeats lie where the interval of another mean of n says it would?

    An interval of the mean of n repeats reaches t s / sqrt(n); the difference of two such means t s sqrt(1/n + 1/m),
    which is sqrt(1 + n/m) times as far. s is the scatter of repeats: intervals of requests within one run lack it.
    """
    reach = np.sqrt(1 + n / max(m, 1))
    distance = np.log(other / known[0])
    bound = np.log(known[2] / known[0]) if distance > 0 else np.log(known[0] / known[1])
    return AGREE if abs(distance) <= reach * bound else DIFFER
