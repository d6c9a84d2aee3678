"""The variance of a start's mean: a comparison's own, moderated by those of the others of its engine.

A comparison has few starts, so its own variance of start means, s^2 on d degrees of freedom, is moderated by those of
the other comparisons of its engine, this campaign's and earlier ones':

    s~^2 = (d0 s0^2 + d s^2) / (d0 + d)          a t interval on d0 + d degrees of freedom

as in Smyth, "Linear Models and Empirical Bayes Methods", Statistical Applications in Genetics and Molecular Biology 3
(2004), section 6.2: d0 is small where comparisons differ in noise and infinite where they do not. Comparisons that
share servers share their luck, so the degrees of freedom are never more than those of what was independent
(`Variances.df`); and the others may widen an interval but never narrow it. Both were needed to cover 93% where the
noise of configurations differs (tests/benchmarks/bench_inference.py).
"""

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import optimize, special

# Two configurations that are compared with one base have half of their noise in common (squared, as variances see it).
SHARED = 0.25


Starts = Sequence[Sequence[float]]  # the logarithms of each start's blocks


@dataclass(frozen=True)
class Spread:
    """How one comparison scatters in one campaign: square, the variance of its starts' means, on `df` degrees of
    freedom; per_start: mean of 1/n over its starts of n blocks; within: sum of squares in its starts, on within_df.

    group: (campaign, configuration). Comparisons of one group share their servers, so together they count as one. of:
    what is compared; the same comparison in an earlier campaign has the same.
    """

    square: float
    df: int
    per_start: float
    within: float
    within_df: int
    group: Hashable = None
    of: Hashable = None


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
        total = sum(s.df for s in self._known)
        weights = {name: sum(df) / total / math.sqrt(fmean(df)) for name, df in groups.items()}
        return 1 / sum(a * b * _shared(x, y) for x, a in weights.items() for y, b in weights.items())

    @functools.cached_property
    def prior(self) -> tuple[float, float]:
        """(s0^2, d0): the typical variance of a start's mean, and how much a comparison's own is drawn towards it."""
        return _prior([(s.square, s.df) for s in self._known])

    @functools.cached_property
    def _own(self) -> dict[Hashable, tuple[float, int]]:
        found: dict[Hashable, tuple[float, int]] = {}
        for s in self._known:
            square, df = found.get(s.of, (0.0, 0))
            found[s.of] = ((square * df + s.square * s.df) / (df + s.df), df + s.df)
        return found

    def own(self, of: Hashable) -> tuple[float, int]:
        """(s^2, d) of one comparison, over all campaigns."""
        return self._own.get(of, (0.0, 0))

    @functools.cached_property
    def per_start(self) -> float:
        """Mean of 1/n over the starts that the variances come from."""
        return fmean([s.per_start for s in self._known]) if self._known else 1.0

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


def spread(starts: Starts, group: Hashable = None, of: Hashable = None) -> Spread:
    """How one comparison's starts scatter."""
    filled = [s for s in starts if len(s)]  # a handful of numbers each: plain sums are faster than arrays
    if not filled:
        return Spread(0.0, 0, 1.0, 0.0, 0, group, of)
    means = [fmean(s) for s in filled]
    return Spread(
        square=_squares(means) / (len(filled) - 1) if len(filled) > 1 else 0.0,
        df=len(filled) - 1,
        per_start=fmean([1 / len(s) for s in filled]),
        within=sum(_squares(s) for s in filled),
        within_df=sum(len(s) - 1 for s in filled),
        group=group,
        of=of,
    )


def pooled(comparisons: Sequence[Starts], groups: Sequence[Hashable] | None = None) -> Variances:
    """The variances of several comparisons (or sides); without `groups` they share nothing."""
    groups = range(len(comparisons)) if groups is None else groups
    return Variances(tuple(spread(s, g) for s, g in zip(comparisons, groups, strict=True)))


def joined(*variances: Variances) -> Variances:
    """Several sets as one: this campaign's and earlier ones', each weighted by its degrees of freedom."""
    return Variances(tuple(s for v in variances for s in v.spreads))


def start_variance(own: tuple[float, int], per_start: float, v: Variances) -> tuple[float, float]:
    """(the moderated variance of a start's mean, its degrees of freedom); df 0: not known. own: (s^2, d)."""
    if v.df <= 0:
        return math.nan, 0.0
    scale, d0 = v.prior
    square, own_df = own
    share = 1.0 if math.isinf(d0) else d0 / (d0 + own_df)
    # Others may widen an interval and never narrow it: a comparison may be noisier than all of them.
    moderated = max(share * scale + (1 - share) * square, square)
    df = min(d0 + own_df, v.df)
    # The others' variances hold V_b at their own number of blocks a start; fewer blocks add to it. More blocks would
    # take from it, but a difference of two variances is known too badly to make an interval narrower.
    apart, (within, within_df) = max(per_start - v.per_start, 0.0), v.within
    if apart == 0:
        return moderated, df
    if within_df == 0:
        return moderated * per_start / v.per_start, df
    corrected = moderated + apart * within
    if corrected == 0:
        return 0.0, df
    return corrected, corrected**2 / (moderated**2 / df + (apart * within) ** 2 / within_df)


def _squares(values: Sequence[float]) -> float:
    """The sum of squares around the mean."""
    middle = fmean(values)
    return sum((v - middle) ** 2 for v in values)
