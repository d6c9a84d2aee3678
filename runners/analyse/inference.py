"""One model for every interval, p value and answer about a ratio: blocks in starts, starts in campaigns.

    y[s, b] = mu + start[s] + block[s, b]        start ~ N(0, V_s), block ~ N(0, V_b), independent

y is the logarithm of a ratio (both sides in one block) or of a speed (one side alone). A *start* is one life of a
server, or of the pair; blocks of one start share its luck, so that more blocks alone never make an interval narrow.
mu is estimated by the mean of the starts' means. With two campaigns or more the same model holds one storey higher:
campaigns take the place of starts, and their starts' means that of blocks (`units`).

A comparison has few starts, so its own variance of start means, s^2 on d degrees of freedom, is moderated by those of
the other comparisons of its engine, this campaign's and earlier ones':

    s~^2 = (d0 s0^2 + d s^2) / (d0 + d)          a t interval on d0 + d degrees of freedom

as in Smyth, "Linear Models and Empirical Bayes Methods", Statistical Applications in Genetics and Molecular Biology 3
(2004), section 6.2: d0 is small where comparisons differ in noise and infinite where they do not. Comparisons that
share servers share their luck, so the degrees of freedom are never more than those of what was independent
(`Variances.df`). With one start and nothing to pool there is no interval: the answer is "undecided".
"""

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special, stats

LEVEL = 0.95
STARTS, CAMPAIGNS, NOTHING = "starts", "campaigns", "none"  # what an interval is over
YES, NO, NO_DIFFERENCE, UNDECIDED = "yes", "no", "no difference", "undecided"
# Two configurations that are compared with one base have half of their noise in common (squared, as variances see it).
SHARED = 0.25

Starts = Sequence[Sequence[float]]  # the logarithms of each start's blocks


@dataclass(frozen=True)
class Spread:
    """How one comparison scatters in one campaign: square, the variance of its starts' means, on `df` degrees of
    freedom; per_start: mean of 1/n over its starts of n blocks; within: sum of squares in its starts, on within_df.

    group: (campaign, configuration). Comparisons of one group share their servers, so together they count as one.
    """

    square: float
    df: int
    per_start: float
    within: float
    within_df: int
    group: Hashable


@dataclass(frozen=True)
class Variances:
    """The variances that comparisons of one kind share; empty: nothing is known."""

    spreads: tuple[Spread, ...] = ()

    @functools.cached_property
    def _known(self) -> list[Spread]:
        return [s for s in self.spreads if s.df > 0]

    @functools.cached_property
    def df(self) -> float:
        """Degrees of freedom of all the variances of starts together, for what they share; 0: not known."""
        groups: dict[Hashable, list[int]] = {}
        for s in self._known:
            groups.setdefault(s.group, []).append(s.df)
        if not groups:
            return 0.0
        names, total = list(groups), sum(s.df for s in self._known)
        weight = np.array([sum(groups[n]) / total for n in names])
        root = np.sqrt([np.mean(groups[n]) for n in names])
        same = [[_shared(a, b) for b in names] for a in names]
        return float(1 / (np.outer(weight / root, weight / root) * np.array(same)).sum())

    @functools.cached_property
    def prior(self) -> tuple[float, float]:
        """(s0^2, d0): the typical variance of a start's mean, and how much a comparison's own is drawn towards it."""
        return _prior([(s.square, s.df) for s in self._known])

    @functools.cached_property
    def per_start(self) -> float:
        """Mean of 1/n over the starts that the variances come from."""
        return float(np.mean([s.per_start for s in self._known])) if self._known else 1.0

    @functools.cached_property
    def within(self) -> tuple[float, int]:
        """(V_b, its degrees of freedom)."""
        df = sum(s.within_df for s in self.spreads)
        return (sum(s.within for s in self.spreads) / df if df else 0.0), df


def _shared(a: Hashable, b: Hashable) -> float:
    if a == b:
        return 1.0
    campaigns = [g[0] if isinstance(g, tuple) and len(g) == 2 else None for g in (a, b)]
    return SHARED if campaigns[0] is not None and campaigns[0] == campaigns[1] else 0.0


def _prior(squares: list[tuple[float, int]]) -> tuple[float, float]:
    """Smyth's (s0^2, d0) of variances with their degrees of freedom, by the moments of their logarithms."""
    if not squares:
        return math.nan, 0.0
    square, df = (np.array(v, dtype=float) for v in zip(*squares, strict=True))
    mean = float((square * df).sum() / df.sum())
    if len(square) < 3 or mean == 0:
        return mean, math.inf
    # A variance that is zero by rounding says nothing of how far the others lie apart.
    logs = np.log(np.maximum(square, 1e-3 * mean)) - special.digamma(df / 2) + np.log(df / 2)
    excess = float(logs.var(ddof=1) - special.polygamma(1, df / 2).mean())
    if excess <= special.polygamma(1, 5e3):
        return mean, math.inf
    half = optimize.brentq(lambda x: float(special.polygamma(1, x)) - excess, 1e-2, 1e4)
    scale = math.exp(float(logs.mean()) + float(special.digamma(half)) - math.log(half))
    return max(scale, 0.0), 2 * half


@dataclass(frozen=True)
class Estimate:
    """A ratio with the standard error of its logarithm. df 0: the error is not known, and neither is an interval.

    level: of its interval: above LEVEL where the campaign looks more than once (repeated_looks.py). starts, blocks,
    campaigns: what it rests on.
    """

    log_ratio: float
    error: float
    df: float
    level: float = LEVEL
    starts: int = 0
    blocks: int = 0
    campaigns: int = 1

    @property
    def ratio(self) -> float:
        return math.exp(self.log_ratio)

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """(low, high) of the ratio, at its own level or another; NaN where the error is not known."""
        if not self.df > 0:
            return math.nan, math.nan
        reach = t_quantile((1 + (level or self.level)) / 2, self.df) * self.error
        return math.exp(self.log_ratio - reach), math.exp(min(self.log_ratio + reach, 700.0))

    def p_value(self) -> float:
        """Two-sided, for a true ratio of 1; NaN where the error is not known.

        At one look of several it is multiplied so that 5% means what leaving the interval of `level` means.
        """
        if not self.df > 0:
            return math.nan
        if self.error == 0:
            return float(self.log_ratio == 0)
        p = float(2 * special.stdtr(self.df, -abs(self.log_ratio) / self.error))
        return min(1.0, p * (1 - LEVEL) / (1 - self.level))

    def answer(self, margin: float) -> str:
        """Does it pay? Each answer needs the whole interval: above 1 + margin, below 1 - margin, or between the two."""
        low, high = self.interval()
        if math.isnan(low):
            return UNDECIDED
        if low > 1 + margin:
            return YES
        if high < 1 - margin:
            return NO
        return NO_DIFFERENCE if 1 - margin < low and high < 1 + margin else UNDECIDED

    def inverse(self) -> "Estimate":
        """The same estimate of lower / upper."""
        return replace(self, log_ratio=-self.log_ratio)


def unit(found: Estimate) -> str:
    """What its interval is over: STARTS of one campaign, CAMPAIGNS, or NOTHING where it has none."""
    if not found.df > 0:
        return NOTHING
    return CAMPAIGNS if found.campaigns > 1 else STARTS


@functools.lru_cache(maxsize=4096)
def t_quantile(share: float, df: float) -> float:
    """Student's t quantile; scipy.stats' own takes a hundred times as long."""
    return float(special.stdtrit(df, share)) if math.isfinite(df) else float(stats.norm.ppf(share))


def units(campaigns: Sequence[Starts]) -> Starts:
    """The outer units of a comparison with their inner ones: starts with blocks, or campaigns with starts' means."""
    filled = [[s for s in starts if len(s)] for starts in campaigns]
    filled = [starts for starts in filled if starts]
    if len(filled) > 1:
        return [[float(np.mean(s)) for s in starts] for starts in filled]
    return filled[0] if filled else []


def spread(starts: Starts, group: Hashable = None) -> Spread:
    """How one comparison's starts scatter."""
    filled = [np.asarray(s, dtype=float) for s in starts if len(s)]
    if not filled:
        return Spread(0.0, 0, 1.0, 0.0, 0, group)
    means = np.array([s.mean() for s in filled])
    return Spread(
        square=float(means.var(ddof=1)) if len(filled) > 1 else 0.0,
        df=len(filled) - 1,
        per_start=float(np.mean([1 / len(s) for s in filled])),
        within=float(sum(((s - s.mean()) ** 2).sum() for s in filled)),
        within_df=sum(len(s) - 1 for s in filled),
        group=group,
    )


def pooled(comparisons: Sequence[Starts], groups: Sequence[Hashable] | None = None) -> Variances:
    """The variances of several comparisons (or sides); without `groups` they share nothing."""
    groups = range(len(comparisons)) if groups is None else groups
    return Variances(tuple(spread(s, g) for s, g in zip(comparisons, groups, strict=True)))


def joined(*variances: Variances) -> Variances:
    """Several sets as one: this campaign's and earlier ones', each weighted by its degrees of freedom."""
    return Variances(tuple(s for v in variances for s in v.spreads))


def estimate(starts: Starts, variances: Variances, level: float = LEVEL) -> Estimate:
    """mu of one set of starts: a comparison's log ratio, or one side's log speed."""
    filled = [s for s in starts if len(s)]
    if not filled:
        return Estimate(math.nan, math.nan, 0.0, level)
    mean = float(np.mean([np.mean(s) for s in filled]))
    square, df = _start_variance(spread(filled), variances)
    error = math.sqrt(square / len(filled)) if df > 0 else math.nan
    return Estimate(mean, error, df, level, len(filled), sum(map(len, filled)))


def difference(upper: Starts, lower: Starts, variances: Variances, level: float = LEVEL) -> Estimate:
    """log ratio of two sides whose servers were started one after the other: blocks are never paired then."""
    a, b = (estimate(side, variances, level) for side in (upper, lower))
    both = total([a, b.inverse()])
    return replace(both, df=min(both.df, variances.df))  # both sides know their error from the same spreads


def total(parts: Sequence[Estimate]) -> Estimate:
    """The sum of independent log ratios: variances add; degrees of freedom by Satterthwaite (Biometrics Bulletin 2,
    1946). Its level is the highest of the parts'.
    """
    square = sum(p.error**2 for p in parts)
    df = 0.0
    if all(p.df > 0 for p in parts):
        below = sum(p.error**4 / p.df for p in parts)
        df = square**2 / below if below else min(p.df for p in parts)
    return Estimate(
        sum(p.log_ratio for p in parts), math.sqrt(square), df, max(p.level for p in parts),
        min(p.starts for p in parts), min(p.blocks for p in parts), min(p.campaigns for p in parts),
    )  # fmt: skip


def _start_variance(own: Spread, v: Variances) -> tuple[float, float]:
    """(the moderated variance of a start's mean, its degrees of freedom); df 0: not known."""
    if v.df <= 0:
        return math.nan, 0.0
    scale, d0 = v.prior
    share = 1.0 if math.isinf(d0) else d0 / (d0 + own.df)
    moderated = share * scale + (1 - share) * own.square
    df = min(d0 + own.df, v.df)
    # The others' variances hold V_b at their own number of blocks a start; fewer blocks add to it. More blocks would
    # take from it, but a difference of two variances is known too badly to make an interval narrower.
    apart, (within, within_df) = share * max(own.per_start - v.per_start, 0.0), v.within
    if apart == 0:
        return moderated, df
    if within_df == 0:
        return moderated * own.per_start / v.per_start, df
    corrected = moderated + apart * within
    if corrected == 0:
        return 0.0, df
    return corrected, corrected**2 / (moderated**2 / df + (apart * within) ** 2 / within_df)
