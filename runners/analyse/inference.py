"""One model for every interval, p value and answer about a ratio: blocks in starts, starts in campaigns.

    y[s, b] = mu + start[s] + block[s, b]        start ~ N(0, V_s), block ~ N(0, V_b), independent

y is the logarithm of a ratio (both sides in one block) or of a speed (one side alone). A *start* is one life of a
server, or of the pair; blocks of one start share its luck, so that more blocks alone never make an interval narrow.
mu is estimated by the mean of the starts' means. With two campaigns or more the same model holds one storey higher:
campaigns take the place of starts, and their starts' means that of blocks (`units`).

A comparison has few starts, so the variance of their mean is learned from all comparisons of an engine (variances.py).
With one start and nothing to learn from there is no interval: the answer is "undecided".
"""

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from scipy import special, stats

from runners.analyse.variances import Starts, Variances, spread, start_variance

LEVEL = 0.95
STARTS, CAMPAIGNS, NOTHING = "starts", "campaigns", "none"  # what an interval is over
YES, NO, NO_DIFFERENCE, UNDECIDED = "yes", "no", "no difference", "undecided"


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
        return [[fmean(s) for s in starts] for starts in filled]
    return filled[0] if filled else []


def estimate(starts: Starts, variances: Variances, level: float = LEVEL, of: Hashable = None) -> Estimate:
    """mu of one set of starts: a comparison's log ratio, or one side's log speed. of: its name among `variances`, where
    they hold its own variance of other campaigns too.
    """
    filled = [s for s in starts if len(s)]
    if not filled:
        return Estimate(math.nan, math.nan, 0.0, level)
    middle = fmean([fmean(s) for s in filled])
    mine = spread(filled)
    square, df = start_variance((mine.square, mine.df) if of is None else variances.own(of), mine.per_start, variances)
    error = math.sqrt(square / len(filled)) if df > 0 else math.nan
    return Estimate(middle, error, df, level, len(filled), sum(map(len, filled)))


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
