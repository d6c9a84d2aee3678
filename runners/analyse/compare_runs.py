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
AGREE, DIFFER, UNKNOWN = "agree", "differ", "cannot be told"
BOTH, SCATTER = "both intervals", "the scatter of the other side's repeats"


def pairs(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row a point and ratio that both measured: `a`, `b` with bounds, their ratio, and whether they agree.

    first, second: breakeven.step_costs. agree: the intervals overlap. Where one side has too few repeats for an
    interval of its own, its point lies where the other side's repeats say that so few would fall (`judged` says which);
    "cannot be told" where neither is there.
    """
    both = first.merge(second, on=POINT, suffixes=("_a", "_b"))
    rows = []
    for r in both.to_dict("records"):
        for name, words in RATIOS.items():
            a = [r[f"{name}{end}_a"] for end in ("", "_lo", "_hi")]
            b = [r[f"{name}{end}_b"] for end in ("", "_lo", "_hi")]
            if pd.isna(a[0]) or pd.isna(b[0]):
                continue
            rows.append({key: r[key] for key in POINT} | {"what": words, "a": a, "b": b, "b_over_a": b[0] / a[0]})
            repeated = [r[f"unit_{side}"] == intervals.REPEATS and pd.notna(x[1]) for side, x in (("a", a), ("b", b))]
            counts = [r["n_repeats_a"], r["n_repeats_b"]]
            if repeated[0] == repeated[1]:
                found = {"outcome": _overlap(a, b), "judged": BOTH}
            elif repeated[0]:
                found = {"outcome": _foretold(a, counts[0], b[0], counts[1]), "judged": SCATTER}
            else:
                found = {"outcome": _foretold(b, counts[1], a[0], counts[0]), "judged": SCATTER}
            rows[-1] |= found
    return pd.DataFrame(rows, columns=[*POINT, "what", "a", "b", "b_over_a", "outcome", "judged"])


def _overlap(a: list[float], b: list[float]) -> str:
    if any(pd.isna(x) for x in (*a, *b)):
        return UNKNOWN
    return AGREE if a[1] <= b[2] and b[1] <= a[2] else DIFFER


def _foretold(known: list[float], n: int, other: float, m: int) -> str:
    """Does a mean of m repeats lie where the interval of another mean of n says it would?

    An interval of the mean of n repeats reaches t s / sqrt(n); the difference of two such means t s sqrt(1/n + 1/m),
    which is sqrt(1 + n/m) times as far. Intervals of requests within one run know nothing of s.
    """
    reach = np.sqrt(1 + n / max(m, 1))
    apart = np.log(other / known[0])
    bound = np.log(known[2] / known[0]) if apart > 0 else np.log(known[0] / known[1])
    return AGREE if abs(apart) <= reach * bound else DIFFER
