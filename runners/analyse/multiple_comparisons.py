"""Many comparisons corrected together, and how many repeats one of them takes.

A table of fifty points at 95% shows two or three differences by chance alone. So each answer is tested, and the tests
of a table are corrected together: Benjamini and Hochberg, "Controlling the False Discovery Rate", JRSS B 57 (1995).
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from runners.analyse import inference, results
from runners.analyse.inference import Estimate

FALSE_DISCOVERIES = 0.05
MOST_REPEATS = 99


def adjusted(p: pd.Series) -> pd.Series:
    """Benjamini and Hochberg's adjusted p-values; NaN stays NaN and does not count as a test."""
    known = p.dropna()
    if known.empty:
        return p.astype(float)
    values = stats.false_discovery_control(known.to_numpy(dtype=float), method="bh")
    return pd.Series(values, index=known.index).reindex(p.index)


def answered(points: pd.DataFrame, speed_ups: Sequence[Estimate], margin: float) -> pd.DataFrame:
    """Points (step_cost.step_costs) with p, q and pays of their speed-ups, in the same order.

    q: p adjusted over all points; over the pools of workloads by themselves, which say the same again. pays: the answer
    of the interval (Estimate.answer); yes and no also need q at most FALSE_DISCOVERIES.
    """
    p = pd.Series([e.p_value() for e in speed_ups], index=points.index, dtype=float)
    pool = points["workload"] == "all"
    q = pd.concat([adjusted(p[~pool]), adjusted(p[pool])]).reindex(points.index)
    answers = [e.answer(margin) for e in speed_ups]
    pays = [
        inference.UNDECIDED if answer in (inference.YES, inference.NO) and not holds else answer
        for answer, holds in zip(answers, q <= FALSE_DISCOVERIES, strict=True)
    ]
    return points.assign(p=p, q=q, pays=pays)


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
