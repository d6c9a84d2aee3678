"""Choose among configurations: those that are not clearly behind the best, and the simplest of them.

A configuration is clearly behind when the interval of best / it lies above 1 + margin. Many are compared with the best,
so the intervals are wider than those of one comparison: the levels are Holm's (Scandinavian Journal of Statistics 6,
1979), by which all comparisons with the best hold together at 95%, not each one alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from runners.profiles import methods


class Ratio(Protocol):
    """A ratio with its interval, as comparisons.ratio gives it. level: of the interval of one comparison alone."""

    @property
    def ratio(self) -> float: ...

    @property
    def level(self) -> float: ...

    def interval(self, level: float | None = None) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Contender:
    """One configuration at one concurrency, for one use and workload."""

    configuration: str
    engine: str
    method: str
    k: int | None  # draft tokens a step
    precision: str
    concurrency: int
    value: float  # tok/s, by the metric of the use
    end_to_end: float  # tok/s of the answers, prompts and waiting included, all streams together
    decode: float  # tok/s of one stream while it decodes
    to_reference: float | None  # mean share of an answer that equals the reference model's; None: not known


@dataclass(frozen=True)
class Choice:
    """What to serve. among: those not clearly behind the best, the best first; behind: the best of the others."""

    best: Contender
    serve: Contender
    among: tuple[Contender, ...]
    behind: Contender | None
    clear: bool | None  # None: there is nothing to compare with
    reason: str  # why this one, where `among` holds others


Lead = Callable[[Contender, Contender], Ratio]


def choose(contenders: Sequence[Contender], lead: Lead, margin: float) -> Choice:
    """The choice among contenders, one of each configuration. lead(upper, lower): their ratio in the use's metric.

    The best is found by ratios, since a difference of two speeds also holds what the machine did in between.
    """
    ranked = _ranked(contenders, lead)
    best, others = ranked[0], ranked[1:]
    behind = _clearly_behind(best, others, lead, margin)
    among = tuple(c for c in ranked if c not in behind)
    serve = min(among, key=simplicity)  # of equals the first, which is the fastest
    return Choice(
        best,
        serve,
        among,
        next((c for c in others if c in behind), None),
        len(among) == 1 if others else None,
        why(serve, among),
    )


def _ranked(contenders: Sequence[Contender], lead: Lead) -> list[Contender]:
    """The best first: by the ratio to the one with the highest speed, or by speed where no ratio is known."""
    first = max(contenders, key=lambda c: c.value)

    def place(c: Contender) -> float:
        ratio = 1.0 if c is first else lead(c, first).ratio
        return ratio if ratio > 0 else c.value / first.value  # False for NaN

    return sorted(contenders, key=lambda c: (-place(c), simplicity(c), c.configuration))


def _clearly_behind(best: Contender, others: Sequence[Contender], lead: Lead, margin: float) -> list[Contender]:
    """Holm's procedure: the clearest of n at the level for n, the next one at the level for n - 1, and so on."""
    open_, behind = {c: lead(best, c) for c in others}, list[Contender]()
    while open_:
        n = len(open_)
        found = next((c for c, r in open_.items() if r.interval(1 - (1 - r.level) / n)[0] > 1 + margin), None)
        if found is None:
            break
        behind.append(found)
        del open_[found]
    return behind


def simplicity(c: Contender) -> tuple[int, int]:
    """Sorts the simplest first: no speculation, then no drafter, then fewer draft tokens."""
    return simplicity_of(c.method, c.k)


def simplicity_of(method: str, k: int | None) -> tuple[int, int]:
    """`simplicity` of a method and its draft tokens a step."""
    return (_kind(method), k or 0)


def _kind(method: str) -> int:
    """0: does not speculate, 1: looks drafts up and has no drafter, 2: any other."""
    return 0 if method == "none" else 1 if methods.method(method).drafter == "none" else 2


def why(serve: Contender, among: Sequence[Contender]) -> str:
    """Why it is the choice of several that are not clearly behind, the best of them first; empty where it is alone."""
    best = among[0]
    if len(among) == 1:
        return ""
    if serve is best:
        simplest = "it does not speculate" if _kind(serve.method) == 0 else "none of them is simpler"
        return f"it was the fastest, and {simplest}"
    if _kind(serve.method) < _kind(best.method):
        return "it does not speculate" if _kind(serve.method) == 0 else "it needs no drafter"
    return "it drafts fewer tokens"


@dataclass(frozen=True)
class MixedRatio:
    """The ratio of two speeds over a mix of workloads.

    parts: (share of the lower side's time, ratio) of each workload. The time that the upper side takes is the sum of
    shares / ratios. The workloads share starts, so their errors are taken to go together: the interval is never too
    narrow for that.
    """

    parts: tuple[tuple[float, Ratio], ...]

    @property
    def ratio(self) -> float:
        return self._over([r.ratio for _, r in self.parts])

    @property
    def level(self) -> float:
        return max(r.level for _, r in self.parts)

    def interval(self, level: float | None = None) -> tuple[float, float]:
        level = level or self.level
        ends = [r.interval(level) for _, r in self.parts]
        return self._over([lo for lo, _ in ends]), self._over([hi for _, hi in ends])

    def _over(self, ratios: Sequence[float]) -> float:
        if any(math.isnan(r) or r <= 0 for r in ratios):
            return math.nan
        return 1 / sum(share / r for (share, _), r in zip(self.parts, ratios, strict=True))


def mixed_speed(shares: Sequence[float], speeds: Sequence[float]) -> float:
    """tok/s over a mix: shares of the answers' tokens, and the speed of each workload."""
    return 1 / sum(s / v for s, v in zip(shares, speeds, strict=True))


def mixed_ratio(shares: Sequence[float], lower: Sequence[float], ratios: Sequence[Ratio]) -> MixedRatio:
    """upper / lower over a mix, from each workload's own ratio. lower: tok/s of the lower side in each workload."""
    seconds = [s / v for s, v in zip(shares, lower, strict=True)]
    return MixedRatio(tuple((t / sum(seconds), r) for t, r in zip(seconds, ratios, strict=True)))
