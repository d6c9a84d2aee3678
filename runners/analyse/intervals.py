"""A figure with its bounds: bootstrap intervals that stay honest with few values."""

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from runners.core.format import interval_text

LEVEL = 0.95
SEED = 20_240
RESAMPLES = 4_000
REPEATS, WITHIN_RUN, NOTHING = "repeats", "requests within the run", "none"


@dataclass(frozen=True)
class Interval:
    """A point estimate with bounds; NaN bounds if nothing could be resampled. `n` counts resampled units."""

    point: float
    lo: float
    hi: float
    n: int
    unit: str = REPEATS
    paired: bool = False

    @property
    def within_run(self) -> bool:
        """True when run-to-run variation is not in the interval."""
        return self.unit == WITHIN_RUN

    @property
    def side(self) -> int:
        """+1 if the interval lies above 1, -1 if below, 0 if it holds 1 or is unknown (for ratios)."""
        return int(self.lo > 1) - int(self.hi < 1)

    def map(self, f: Callable[[float], float]) -> "Interval":
        """The interval of a monotone function of the quantity; bounds swap if it falls."""
        ends = sorted([f(self.lo), f(self.hi)])
        return Interval(f(self.point), ends[0], ends[1], self.n, self.unit, self.paired)

    def widened(self, factor: float) -> "Interval":
        """Widened to hold the quantity times `factor` too: for a known influence that may have moved it by so much."""
        lo, hi = min(self.lo, self.lo * factor), max(self.hi, self.hi * factor)
        return Interval(self.point, lo, hi, self.n, self.unit, self.paired)

    def text(self, decimals: int = 2) -> str:
        """`1.05 [1.02, 1.08]`, or "not measured here"."""
        return interval_text(self.point, self.lo, self.hi, decimals)


def nothing(unit: str = NOTHING) -> Interval:
    """The interval of a quantity that was not measured."""
    return Interval(np.nan, np.nan, np.nan, 0, unit)


def expanded(level: float, n: int) -> float:
    """The level to ask of a bootstrap of n values so that it covers `level`.

    A bootstrap of few values is too narrow twice over: its spread is short by sqrt((n-1)/n) and it knows no t
    quantile. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69
    (2015), widens the percentiles to make up for both. At n = 3 that means the whole range of the data, not
    more.
    """
    tail = stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1))
    return float(1 - 2 * tail)


def bootstrap(
    samples: Sequence[np.ndarray], statistic: Callable, level: float, seed: int, paired: bool
) -> tuple[float, float]:
    """(low, high) of a statistic of one or several samples, at the level of `expanded`; NaN where there are none.

    statistic: vectorized, as scipy.stats.bootstrap asks. BCa where it is defined, percentile otherwise.
    """
    wide = expanded(level, min(len(s) for s in samples))
    for method in ("BCa", "percentile"):  # BCa has no value when the jackknife or the bias is degenerate
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bounds = stats.bootstrap(
                samples, statistic, paired=paired, confidence_level=wide, n_resamples=RESAMPLES,
                method=method, vectorized=True, rng=np.random.default_rng(seed),
            ).confidence_interval  # fmt: skip
        if np.isfinite(bounds.low) and np.isfinite(bounds.high):
            return float(bounds.low), float(bounds.high)
    return np.nan, np.nan


def interval(
    values: Sequence[float],
    level: float = LEVEL,
    seed: int = SEED,
    statistic: Callable = np.mean,
    within_run: bool = False,
) -> Interval:
    """Bootstrap interval of `statistic` (mean by default) over `values`: repeats, or requests with `within_run`.

    One value has no bounds; equal values have bounds equal to them. The same seed gives the same interval.
    """
    x = np.asarray([v for v in values if pd.notna(v)], dtype=float)
    unit = WITHIN_RUN if within_run else REPEATS
    if len(x) == 0:
        return nothing(unit)
    point = float(statistic(x))
    if len(x) == 1:
        return Interval(point, np.nan, np.nan, 1, unit)
    lo, hi = (point, point) if np.ptp(x) == 0 else bootstrap((x,), statistic, level, seed, False)
    return Interval(point, lo, hi, len(x), unit)


@functools.lru_cache
def coverage(n: int, level: float = LEVEL, trials: int = 300, seed: int = SEED) -> float:
    """How often `interval` holds the true mean of n normal values: its real level, by simulation."""
    if n < 2:
        return float("nan")
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(trials):
        one = interval(rng.normal(0.0, 1.0, n), level, seed)
        held += one.lo <= 0.0 <= one.hi
    return held / trials


def coverage_table(counts: Sequence[int], level: float = LEVEL) -> pd.DataFrame:
    """Columns repeats, asked, held: the simulated coverage of an interval of each number of repeats, as text."""
    known = sorted({int(n) for n in counts if n >= 2})
    return pd.DataFrame(
        {
            "repeats": known,
            "asked": [f"{level:.0%}"] * len(known),
            "held, in simulation on normal data": [f"{coverage(n, level):.0%}" for n in known],
        }
    )
