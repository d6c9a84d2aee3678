"""Many comparisons corrected together, and how many repeats one of them takes.

A table of fifty points at 95% shows two or three differences by chance alone. So each answer is tested, and the tests
of a table are corrected together: Benjamini and Hochberg, "Controlling the False Discovery Rate", JRSS B 57 (1995).
"""

import math

import numpy as np
import pandas as pd
from scipy import stats

from runners.analyse import results
from runners.analyse.intervals import REPEATS

FALSE_DISCOVERIES = 0.05
MOST_REPEATS = 99


def p_value(point: float, lo: float, hi: float, n: int, level: float = 0.95) -> float:
    """Two-sided p that a ratio is 1, from its interval: ln(point) against the standard error that the bounds imply.

    Student's t with n - 1 degrees of freedom, n the repeats. NaN without bounds or with fewer than two repeats.
    """
    if any(pd.isna(v) for v in (point, lo, hi)) or n < 2 or min(point, lo) <= 0:
        return float("nan")
    reach = stats.t.ppf((1 + level) / 2, n - 1)
    error = (math.log(hi) - math.log(lo)) / (2 * reach)
    if error == 0:
        return 0.0 if point != 1 else 1.0
    return float(2 * stats.t.sf(abs(math.log(point)) / error, n - 1))


def adjusted(p: pd.Series) -> pd.Series:
    """Benjamini and Hochberg's adjusted p-values; NaN stays NaN and does not count as a test."""
    known = p.dropna()
    if known.empty:
        return p.astype(float)
    values = stats.false_discovery_control(known.to_numpy(dtype=float), method="bh")
    return pd.Series(values, index=known.index).reindex(p.index)


def of_points(points: pd.DataFrame, name: str = "speed_up", level: float = 0.95) -> pd.DataFrame:
    """Points of a verdict (decide.costs) with `p`, `q` (adjusted over all of them) and `holds` (q at most
    FALSE_DISCOVERIES). `name`: the column tested. Intervals within one run have no p: they know nothing of repeats.
    """
    p = pd.Series(
        [
            p_value(r[name], r[f"{name}_lo"], r[f"{name}_hi"], int(r["n_repeats"] or 0), level)
            if r["unit"] == REPEATS
            else float("nan")
            for r in points.to_dict("records")
        ],
        index=points.index,
        dtype=float,
    )
    q = adjusted(p)
    return points.assign(p=p, q=q, holds=q <= FALSE_DISCOVERIES)


def repeats_needed(spread: float, margin: float) -> int | None:
    """Repeats of each side until a difference of `margin` (a share) shows at 95%; None when more than MOST_REPEATS.

    spread: standard deviation of the log ratio from pair to pair.
    """
    for n in range(2, MOST_REPEATS + 1):
        if stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n) <= math.log(1 + margin):
            return n
    return None


def spreads(cells: pd.DataFrame) -> pd.DataFrame:
    """Standard deviation of log(throughput / base) from repeat to repeat: engine, concurrency, spread, pairs.

    Pooled over an engine's configurations and workloads: what a plan may expect of the next run.
    """
    good = results.ok(cells)
    rows = []
    for engine, part in good.groupby("engine"):
        base = results.base_of(cells, engine)
        for concurrency, at in part.groupby("concurrency"):
            groups = _repeated_log_ratios(at[at.configuration != base], at[at.configuration == base])
            if groups:
                squares = sum(((g - g.mean()) ** 2).sum() for g in groups)
                spread = math.sqrt(squares / sum(len(g) - 1 for g in groups))
                rows.append([engine, int(concurrency), spread, sum(map(len, groups))])
    return pd.DataFrame(rows, columns=["engine", "concurrency", "spread", "pairs"])


def _repeated_log_ratios(own: pd.DataFrame, base: pd.DataFrame) -> list[pd.Series]:
    """log(throughput / base) of each pair of repeats, by configuration and workload; those with two pairs or more."""
    columns = ["workload", "repeat", "output_tokens_per_second"]
    both = own.merge(base[columns], on=["workload", "repeat"], suffixes=("", "_base"))
    ratio = np.log(both.output_tokens_per_second / both.output_tokens_per_second_base)
    return [g for _, g in ratio.groupby([both.configuration, both.workload]) if len(g) > 1]


def plan_lines(cells: pd.DataFrame, margin: float) -> list[str]:
    """For `specverdict plan`: repeats that the profile's practical margin takes, by the spread of earlier runs."""
    lines = []
    for r in spreads(cells).itertuples():
        n = repeats_needed(r.spread, margin)
        count = f"more than {MOST_REPEATS}" if n is None else f"about {n}"
        lines.append(
            f"{r.engine} C={r.concurrency}: {count} repeats to show a difference of {margin:.0%} "
            f"(repeats scatter by {r.spread:.1%}, {r.pairs} pairs)"
        )
    return lines
