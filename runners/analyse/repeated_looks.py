"""Looking at a comparison after every block without inflating its error: group-sequential levels.

Who looks often and stops at the first "clear" answer is wrong far more often than 5%: with ten looks at 95%, in 19%
of the comparisons without a difference. Here the whole error of 5% is spent over the looks as information grows (Lan
and DeMets, Biometrika 70, 1983): little at first, most of it at the end, as in O'Brien and Fleming's rule (Biometrics
35, 1979). `looks` gives the level of the interval that each look may use; together they cover at every look.

Information is the share of the starts that the campaign may make. A campaign that looks after each start spends its
error early instead (`spent_early`), as Pocock's rule does (Biometrika 64, 1977): most points are far from 1 and decided
at the first look, and O'Brien and Fleming's first look asks for a level of 99.9% or more.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import stats

GRID = 400  # points of the numerical integration on each side of zero
REACH = 8.0  # standard deviations that it covers


def spent(information: float, error: float = 0.05) -> float:
    """Error spent on both sides together by the time that `information` (0 to 1) is there; all of it at 1.

    Each side spends 2 - 2 Phi(z / sqrt(information)) of its half (Lan and DeMets 1983, their first function).
    """
    if information <= 0:
        return 0.0
    return float(4 * stats.norm.sf(stats.norm.isf(error / 4) / math.sqrt(min(information, 1.0))))


def spent_early(information: float, error: float = 0.05) -> float:
    """Error spent by the time that `information` is there, evenly over the looks: error ln(1 + (e - 1) information).

    Lan and DeMets 1983, their second function, which is near Pocock's rule.
    """
    return error * math.log1p((math.e - 1) * min(max(information, 0.0), 1.0))


@functools.lru_cache
def level(starts: int, most_starts: int, error: float = 0.05) -> float:
    """The level of the interval after `starts` of at most `most_starts` starts, with a look after each one."""
    made = max(1, min(starts, most_starts))
    return looks(tuple(i / most_starts for i in range(1, made + 1)), error, spent_early)[-1]


@functools.lru_cache
def looks(
    information: tuple[float, ...], error: float = 0.05, spending: Callable[[float, float], float] = spent
) -> tuple[float, ...]:
    """The two-sided level of the interval at each look (0.9999, ..., some 0.958), for increasing shares of information.

    By recursive integration of the test statistic's density over the region where no look has stopped yet (Armitage,
    McPherson and Rowe, JRSS A 132, 1969); the statistic is normal, so a t interval uses the level and not the bound.
    """
    if any(b <= a for a, b in zip(information, information[1:], strict=False)):
        raise ValueError("information must increase from look to look")
    z = np.linspace(-REACH, REACH, 2 * GRID + 1)
    step = z[1] - z[0]
    levels: list[float] = []
    density: np.ndarray | None = None  # of the statistic at the last look, where none has stopped
    bound = math.inf
    used = 0.0
    for at, share in enumerate(information):
        if density is None:
            now = stats.norm.pdf(z)
        else:
            kept = np.abs(z) < bound
            before = information[at - 1]
            # Brownian motion: sqrt(t) z grows by independent increments of variance t - t_before.
            mean, spread = z[kept] * math.sqrt(before / share), math.sqrt(1 - before / share)
            now = (density[kept][None] * stats.norm.pdf(z[:, None], mean[None], spread)).sum(axis=1) * step
        bound = _bound(z, now, step, max(spending(share, error) - used, 0.0))
        used = spending(share, error)
        density = now
        levels.append(float(1 - 2 * stats.norm.sf(bound)))
    return tuple(levels)


def _bound(z: np.ndarray, density: np.ndarray, step: float, error: float) -> float:
    """The bound beyond which, on both sides together, the density holds `error`."""
    positive = z >= 0
    half = density[positive]
    tail = 2 * (np.cumsum(half[::-1])[::-1] - half / 2) * step  # both sides: the density is symmetric
    if error <= tail[-1]:
        return REACH
    return float(np.interp(error, tail[::-1], z[positive][::-1]))
