"""The acceptance that an engine measured with a drafter: from a ledger's counts, or from a server's texts."""

from dataclasses import dataclass

from runners.core.acceptance_math import accept_length
from runners.core.acceptance_math import survival as survival_of
from runners.readers.together import Together


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


def of_server(told: Together) -> Measured | None:
    """From the texts of one server, the best source among them; None where they hold no acceptance."""
    figures = told.figures
    if figures.accept_length is None:
        return None
    steps = told.counts.steps if told.counts else None
    return Measured(figures.accept_length, steps, figures.per_position or [], told.source)
