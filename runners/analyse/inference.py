"""One model for every interval, p value and answer about a ratio: blocks in starts.

    y[s, b] = mu + start[s] + block[s, b]        start ~ N(0, V_s), block ~ N(0, V_b), independent

y is the logarithm of a ratio (paired blocks: both servers alive, measured within seconds) or of a speed (one side of
servers that were started one after the other). A *start* is one life of a server, or of the pair; blocks of one start
share its luck, so that more blocks alone never make an interval narrow. mu is estimated by the mean of the starts'
means, whose variance is V_s / m + V_b mean(1/n) / m for m starts of n blocks each.

A campaign compares many points and starts each server only a few times, so the two variances are pooled over its
comparisons, and earlier campaigns of the same engine and kind of machine may stand in (`Variances`, with their own
degrees of freedom). The degrees of freedom of the sum are Satterthwaite's (Biometrics Bulletin 2, 1946). With one start
and nothing to pool there is no interval: the answer is "undecided".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95
YES, NO, NO_DIFFERENCE, UNDECIDED = "yes", "no", "no difference", "undecided"

Starts = Sequence[Sequence[float]]  # the logarithms of each start's blocks


@dataclass(frozen=True)
class Variances:
    """Pooled variances of logarithms, with their degrees of freedom (0: not known).

    between: of a start's mean with `1 / per_start` blocks in it, that is V_s + V_b * per_start; within: V_b.
    """

    between: float
    between_df: float
    within: float
    within_df: float
    per_start: float  # mean of 1/n over the starts that `between` comes from


@dataclass(frozen=True)
class Estimate:
    """A ratio with the standard error of its logarithm. df 0: the error is not known, and neither is an interval."""

    log_ratio: float
    error: float
    df: float

    @property
    def ratio(self) -> float:
        return math.exp(self.log_ratio)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """(low, high) of the ratio; NaN where the error is not known."""
        if self.df <= 0:
            return math.nan, math.nan
        reach = float(stats.t.ppf((1 + level) / 2, self.df)) * self.error
        return math.exp(self.log_ratio - reach), math.exp(self.log_ratio + reach)

    def p_value(self) -> float:
        """Two-sided, for a true ratio of 1; NaN where the error is not known."""
        if self.df <= 0:
            return math.nan
        if self.error == 0:
            return float(self.log_ratio == 0)
        return float(2 * stats.t.sf(abs(self.log_ratio) / self.error, self.df))

    def answer(self, margin: float, level: float = LEVEL) -> str:
        """Does it pay? Each answer needs the whole interval: above 1 + margin, below 1 - margin, or between the two."""
        low, high = self.interval(level)
        if math.isnan(low):
            return UNDECIDED
        if low > 1 + margin:
            return YES
        if high < 1 - margin:
            return NO
        return NO_DIFFERENCE if 1 - margin < low and high < 1 + margin else UNDECIDED


def pooled(comparisons: Sequence[Starts]) -> Variances:
    """The variances that several comparisons (or sides) share, by sums of squares around each one's own means."""
    square_between = square_within = 0.0
    df_between = df_within = 0
    shares: list[float] = []
    for starts in comparisons:
        filled = [np.asarray(s, dtype=float) for s in starts if len(s)]
        if not filled:
            continue
        means = np.array([s.mean() for s in filled])
        if len(filled) > 1:
            square_between += float(((means - means.mean()) ** 2).sum())
            df_between += len(filled) - 1
            shares += [1 / len(s) for s in filled]
        square_within += float(sum(((s - s.mean()) ** 2).sum() for s in filled))
        df_within += sum(len(s) - 1 for s in filled)
    return Variances(
        between=square_between / df_between if df_between else 0.0,
        between_df=df_between,
        within=square_within / df_within if df_within else 0.0,
        within_df=df_within,
        per_start=float(np.mean(shares)) if shares else 1.0,
    )


def joined(first: Variances, second: Variances) -> Variances:
    """Two sets of variances as one: this campaign's and an earlier one's, each weighted by its degrees of freedom."""
    between_df, within_df = first.between_df + second.between_df, first.within_df + second.within_df

    def mean(a: float, b: float, weight: float, total: float) -> float:
        return (a * weight + b * (total - weight)) / total if total else 0.0

    return Variances(
        mean(first.between, second.between, first.between_df, between_df),
        between_df,
        mean(first.within, second.within, first.within_df, within_df),
        within_df,
        mean(first.per_start, second.per_start, first.between_df, between_df) if between_df else 1.0,
    )


def estimate(starts: Starts, variances: Variances) -> Estimate:
    """mu of one set of starts: a paired comparison's log ratio, or one side's log speed."""
    filled = [s for s in starts if len(s)]
    if not filled:
        return Estimate(math.nan, math.nan, 0.0)
    mean = float(np.mean([np.mean(s) for s in filled]))
    parts = _parts(filled, variances)
    return Estimate(mean, *_error(parts)) if parts else Estimate(mean, math.nan, 0.0)


def difference(upper: Starts, lower: Starts, variances: Variances) -> Estimate:
    """log ratio of two sides whose servers were started one after the other: blocks are never paired then."""
    a, b = estimate(upper, variances), estimate(lower, variances)
    filled = [[s for s in side if len(s)] for side in (upper, lower)]
    parts = [_parts(side, variances) for side in filled] if all(filled) else []
    if not parts or not all(parts):
        return Estimate(a.log_ratio - b.log_ratio, math.nan, 0.0)
    both = [(x[0] + y[0], x[1]) for x, y in zip(*parts, strict=True)]
    return Estimate(a.log_ratio - b.log_ratio, *_error(both))


def _parts(filled: Starts, v: Variances) -> list[tuple[float, float]]:
    """The variance of the mean of the starts' means as (part, degrees of freedom) of each pooled variance; empty if a
    start's own share of it is not known.
    """
    if v.between_df <= 0:
        return []
    m = len(filled)
    own_share = float(np.mean([1 / len(s) for s in filled]))
    # `between` holds V_b at its own number of blocks: the rest (negative where there are more of them) is corrected.
    return [(v.between / m, v.between_df), ((own_share - v.per_start) * v.within / m, max(v.within_df, 1))]


def _error(parts: list[tuple[float, float]]) -> tuple[float, float]:
    """(standard error, degrees of freedom) of a sum of variance parts, by Satterthwaite."""
    (between, between_df), (correction, within_df) = parts
    # Never below half of what the starts themselves show: a correction larger than that is chance.
    total = max(between + correction, between / 2)
    if total == 0:
        return 0.0, between_df
    df = total**2 / (between**2 / between_df + correction**2 / within_df)
    return math.sqrt(total), min(df, between_df + within_df)
