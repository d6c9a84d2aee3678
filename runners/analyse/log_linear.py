"""The plain baseline of a forecast: for each drafter and K the step-cost ratio r is a power of the concurrency C.

    log r = level of the workload + slope x log C

It knows nothing of contexts, batches and prompts. A K that was not measured lies on the straight line through the r of
the two nearest that were; with one K measured, each draft costs the same: r - 1 is in proportion to K. A longer context
of a workload (chat@640) costs what the workload itself does where it was not measured.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

LEAST_COST = 0.1  # plain steps; a line far outside what was measured must not give a cost below 0


@dataclass(frozen=True)
class Line:
    """One drafter at one K."""

    levels: dict[str, float]  # workload -> log r at C = 1
    slope: float  # of log r over log C

    def cost(self, workload: str, concurrency: float) -> float:
        """r; of a workload that was not measured by its base, or by the mean of all."""
        level = self.levels.get(workload, self.levels.get(workload.partition("@")[0]))
        level = float(np.mean(list(self.levels.values()))) if level is None else level
        return float(np.exp(level + self.slope * np.log(concurrency)))


Lines = dict[str, dict[float, Line]]  # drafter -> K -> its line


def fit(rows: pd.DataFrame) -> Lines:
    """rows: drafter, k, workload, concurrency, r. A drafter and K measured at one concurrency alone is left out."""
    lines: Lines = {}
    for (drafter, k), group in rows.groupby(["drafter", "k"]):
        if group.concurrency.nunique() > 1:
            workloads = sorted(set(group.workload))
            terms = np.column_stack([*(group.workload == w for w in workloads), np.log(group.concurrency)])
            values = np.linalg.lstsq(terms.astype(float), np.log(group.r.to_numpy(float)), rcond=None)[0]
            line = Line(dict(zip(workloads, map(float, values), strict=False)), float(values[-1]))
            lines.setdefault(str(drafter), {})[float(k)] = line
    return lines


def step_cost(lines: Lines, drafter: str, k: float, workload: str, concurrency: float) -> float:
    """r of a speculative step at K = k; NaN for a drafter without a line."""
    known = {at: line.cost(workload, concurrency) for at, line in lines.get(drafter, {}).items()}
    if not known:
        return float("nan")
    if k in known:
        return known[k]
    # The two nearest, at best one on each side; a step without a draft (K = 0) costs one plain step.
    below, above = [at for at in known if at < k], [at for at in known if at > k]
    near = sorted(below)[-1:] + sorted(above)[:1] if below and above else sorted(known, key=lambda at: abs(at - k))[:2]
    if len(near) < 2:
        near, known = [0.0, near[0]], known | {0.0: 1.0}
    first, second = near
    return max(LEAST_COST, known[first] + (known[second] - known[first]) * (k - first) / (second - first))
