"""The acceptance lines of one log taken together: sums and weighted means, never a mean of rates."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from runners.readers.records import AcceptanceRecord

# Engines print the accept length with two decimals. Below this, accepted / (length - 1) is off by more than 10%.
SHORTEST_FOR_STEPS = 1.05


@dataclass(frozen=True)
class Pooled:
    """What a log's acceptance lines say together.

    lines: those that tell of drafts. accept_length: over steps with a draft. drafted, accepted: tokens; None where the
    lines have no counts. per_position: share of steps that accepted position 1, 2, ... running: the median of the
    printed requests. throughput: the median of the printed output tokens/s; throughput_left_out: lines whose interval
    also holds time in which nothing ran, so that their throughput says nothing.
    """

    lines: int = 0
    accept_length: float | None = None
    draft_acceptance: float | None = None
    drafted: int | None = None
    accepted: int | None = None
    per_position: list[float] | None = None
    running: float | None = None
    throughput: float | None = None
    throughput_left_out: int = 0


def telling(records: Sequence[AcceptanceRecord]) -> list[AcceptanceRecord]:
    """The records that tell of drafts: engines also print a line when nothing was drafted."""
    return [r for r in records if r.drafted or (r.drafted is None and r.accept_length is not None)]


def steps_of(record: AcceptanceRecord) -> float | None:
    """Verification steps of a line; None where it does not tell them well enough.

    From the counts: accept length = 1 + accepted / steps. A line without counts tells the running requests, and each
    pass verifies every one of them once: steps in a unit of its own.
    """
    if record.accepted is None:
        return float(record.running or 1)
    if record.accept_length is not None and record.accept_length >= SHORTEST_FOR_STEPS:
        return record.accepted / (record.accept_length - 1)
    if record.drafted and record.per_position:
        return record.drafted / len(record.per_position)
    return None


def weights_of(records: Sequence[AcceptanceRecord]) -> list[float]:
    """Steps of each record; where a line does not tell them, its drafted tokens over what the others draft a step."""
    steps = [steps_of(r) for r in records]
    known = [r.drafted / s for r, s in zip(records, steps, strict=True) if r.drafted and s]
    k = statistics.median(known) if known else 1.0
    return [s if s is not None else (r.drafted or 0) / k for r, s in zip(records, steps, strict=True)]


def pool(records: Sequence[AcceptanceRecord]) -> Pooled:
    """All lines of one log together."""
    told = telling(records)
    if not told:
        return Pooled()
    weights = weights_of(told)
    counted = [(r.drafted, r.accepted) for r in told if r.drafted and r.accepted is not None]
    drafted = sum(d for d, _ in counted) if counted else None
    accepted = sum(a for _, a in counted) if counted else None
    share = accepted / drafted if drafted and accepted is not None else None
    if share is None:
        share = _mean([(w, r.recomputed_rate) for w, r in zip(weights, told, strict=True)])
    speeds = [r.throughput for r in told if r.throughput is not None and not r.idle]
    running = [r.running for r in told if r.running is not None]
    return Pooled(
        lines=len(told),
        accept_length=_mean([(w, r.accept_length) for w, r in zip(weights, told, strict=True)]),
        draft_acceptance=share,
        drafted=drafted,
        accepted=accepted,
        per_position=_positions(told, weights),
        running=statistics.median(running) if running else None,
        throughput=statistics.median(speeds) if speeds else None,
        throughput_left_out=sum(1 for r in told if r.idle and r.throughput is not None),
    )


def _mean(weighted: Sequence[tuple[float, float | None]]) -> float | None:
    """The weighted mean of the known values; None without one."""
    known = [(w, value) for w, value in weighted if value is not None]
    total = sum(w for w, _ in known)
    return sum(w * value for w, value in known) / total if total else None


def _positions(records: Sequence[AcceptanceRecord], weights: Sequence[float]) -> list[float] | None:
    """Survival by position over all lines that print it; a position that a line does not have was never accepted."""
    known = [(w, r.per_position) for w, r in zip(weights, records, strict=True) if r.per_position]
    total = sum(w for w, _ in known)
    if not total:
        return None
    longest = max(len(rates) for _, rates in known)
    return [sum(w * rates[i] for w, rates in known if i < len(rates)) / total for i in range(longest)]
