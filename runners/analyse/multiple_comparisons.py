"""Many comparisons corrected together.

A table of fifty points at 95% shows two or three differences by chance alone. So each answer is tested, and the tests
of a table are corrected together: Benjamini and Hochberg, "Controlling the False Discovery Rate", JRSS B 57 (1995).
"""

from collections.abc import Sequence

import pandas as pd
from scipy import stats

from runners.analyse import inference
from runners.analyse.inference import Estimate

FALSE_DISCOVERIES = 0.05


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
