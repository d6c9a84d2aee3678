"""The acceptance that an engine measured with a drafter: from a ledger's counts, a log, or a /metrics text."""

from dataclasses import dataclass
from typing import Any

from runners.core.acceptance_math import accept_length
from runners.core.acceptance_math import survival as survival_of
from runners.readers.records import AcceptanceRecord, Counters, LogReading


@dataclass(frozen=True)
class Measured:
    """accept_length: tokens a verification step, the target's own included. steps: how many; None where the source
    counts none. survival: share of steps that accepted position 1, 2, ...; empty where it does not tell.
    """

    accept_length: float
    steps: int | None
    survival: list[float]
    source: str

    @property
    def reads_one(self) -> bool:
        """Whether an engine's log, which has two decimals, would show 1.00: nothing useful is drafted."""
        return f"{self.accept_length:.2f}" == "1.00"

    @property
    def words(self) -> str:
        """In words, for the terminal."""
        text = f"accept length {self.accept_length:.3f}" + (f" over {self.steps:,} steps" if self.steps else "")
        return text + (f"; survival {', '.join(f'{s:.3f}' for s in self.survival)}" if self.survival else "")


def of_counts(steps: int, accepted: int, per_position: list[int], source: str) -> Measured:
    """From raw counts; steps > 0."""
    return Measured(accept_length(steps, accepted), steps, survival_of(per_position, steps), source)


def of_reading(reading: LogReading | Counters | dict[str, Any], source: str) -> Measured | None:
    """From what `specverdict read` found in a file; None where it holds no acceptance."""
    if isinstance(reading, LogReading):
        return of_log(reading.acceptance, source)
    if isinstance(reading, Counters):
        if reading.steps and reading.accepted is not None:
            return of_counts(reading.steps, reading.accepted, reading.accepted_per_position or [], source)
        length = next((v for name, v in reading.gauges.items() if "accept_length" in name), None)
    else:
        length = reading.get("avg_spec_accept_length") if isinstance(reading, dict) else None
    return Measured(float(length), None, [], source) if length else None


def of_log(records: list[AcceptanceRecord], source: str) -> Measured | None:
    """All acceptance lines together: a ratio of sums where they count, else a mean weighted by running requests."""
    counted = [(steps, r) for r in records if (steps := _steps(r))]
    if counted:
        total = sum(steps for steps, _ in counted)
        accepted = sum(r.accepted or 0 for _, r in counted)
        places = max(len(r.per_position or []) for _, r in counted)
        rates = [[*(r.per_position or []), *[0.0] * places][:places] for _, r in counted]
        survival = [sum(s * row[i] for (s, _), row in zip(counted, rates, strict=True)) / total for i in range(places)]
        return Measured(accept_length(total, accepted), round(total), survival, source)
    lengths = [(r.running or 1, r.accept_length) for r in records if r.accept_length]
    if not lengths:
        return None
    weight = sum(running for running, _ in lengths)
    return Measured(sum(running * length for running, length in lengths) / weight, None, [], source)


def _steps(r: AcceptanceRecord) -> float | None:
    """Verification steps of a line that counts tokens: drafted / K, or accepted / (accept length - 1)."""
    if not r.drafted or r.accepted is None:
        return None
    if r.per_position:
        return r.drafted / len(r.per_position)
    return r.accepted / (r.accept_length - 1) if r.accept_length and r.accept_length > 1.005 else None
