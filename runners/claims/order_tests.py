"""Tests of order and equality between measured figures: `above`, `below` and `equal` in a check.

Each decides by the whole interval of a ratio, never by points: True, False, or None (undecided) where the interval
reaches over the limit or is not known. The interval of x / y is put together from those of x and y on the logarithmic
scale, as if they were independent (Zou and Donner, Statistics in Medicine 27, 2008, "MOVER"). Two ratios with one base
move together, so for them it is wider than it must be.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A figure above 0 with its interval; NaN bounds: not known. A number of the check has itself as bounds."""

    point: float
    lo: float
    hi: float


def ratio_interval(x: Measured, y: Measured) -> tuple[float, float]:
    """(low, high) of x / y, at the level of the two intervals; NaN where one of them is not known.

    ValueError where a figure is not above 0.
    """
    if any(value <= 0 for m in (x, y) for value in (m.point, m.lo, m.hi)):
        raise ValueError("above, below and equal need figures above 0")
    down = math.hypot(math.log(x.point / x.lo), math.log(y.hi / y.point))
    up = math.hypot(math.log(x.hi / x.point), math.log(y.point / y.lo))
    ratio = x.point / y.point
    return ratio * math.exp(-down), ratio * math.exp(up)


def above(x: Measured, y: Measured) -> bool | None:
    """Is x above y? True where all of x / y lies above 1, False where all of it lies below."""
    low, high = ratio_interval(x, y)
    return True if low > 1 else False if high < 1 else None


def below(x: Measured, y: Measured) -> bool | None:
    """Is x below y?"""
    return above(y, x)


def equal(*figures_and_margin: Measured) -> bool | None:
    """equal(a, b, ..., margin): does every ratio of two lie between 1 / (1 + margin) and 1 + margin?

    An equivalence test (two one-sided tests a pair): True needs every interval inside, False one that lies outside.
    ValueError without two figures and a margin above 0.
    """
    *figures, margin = figures_and_margin
    if len(figures) < 2 or margin.point <= 0:
        raise ValueError("equal needs two figures or more, and then a margin above 0")
    answers = []
    for x, y in itertools.combinations(figures, 2):
        low, high = ratio_interval(x, y)
        inside = 1 / (1 + margin.point) < low and high < 1 + margin.point
        outside = high < 1 / (1 + margin.point) or low > 1 + margin.point
        answers.append(True if inside else False if outside else None)
    return both(answers)


def both(answers: list[bool | None]) -> bool | None:
    """`and` of three values: False if one is False, else None if one is undecided."""
    return False if any(a is False for a in answers) else None if None in answers else True


TESTS: dict[str, Callable[..., bool | None]] = {"above": above, "below": below, "equal": equal}
