"""What the base of a configuration answered so far: the texts and the samples that the other's cells are judged by."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from runners.measure.client import TIMED, Result
from runners.measure.ledger import Ledger


@dataclass(frozen=True)
class Text:
    """An answer's text."""

    text: str
    ended: bool = False  # by itself, before the tokens that it was allowed


@dataclass(frozen=True)
class Sample:
    """One answer as a draw from a distribution: what is compared at a temperature above 0."""

    prompt_id: str
    text: str
    tokens: int | None


@dataclass
class BaseAnswers:
    """The base's answers by prompt, and by point (workload, C)."""

    texts: dict[str, list[Text]] = field(default_factory=dict)  # prompt id -> its distinct answers in full
    samples: dict[tuple[str, int], list[Sample]] = field(default_factory=lambda: defaultdict(list))

    def add(self, workload: str, concurrency: int, results: Sequence[Result]) -> None:
        """One cell that passed its own gates: two wrong engines must not confirm each other."""
        for r in results:
            # Only answers in full: a text cut after a word would be "equal" to anything that begins with that word.
            if r.error is None and r.role == TIMED:
                self._add(workload, concurrency, Sample(r.prompt_id, r.text, r.output_tokens), r.finish_reason)

    def _add(self, workload: str, concurrency: int, sample: Sample, finish_reason: str | None) -> None:
        self.samples[workload, concurrency].append(sample)
        text, known = Text(sample.text, finish_reason == "stop"), self.texts.setdefault(sample.prompt_id, [])
        if text not in known:
            known.append(text)


def of_ledger(base: Ledger) -> BaseAnswers:
    """The answers of every cell of the ledger that is ok."""
    good = [row for row in base.rows() if row["status"] == "ok"]
    points = {(row["key"], row.get("attempt", 0)): (row["workload"], row["concurrency"]) for row in good}
    found = BaseAnswers()
    for row in base.requests().itertuples():
        point = points.get((row.key, row.attempt))
        role = getattr(row, "role", None)  # null, or no column at all, in rows of an earlier release: in full
        if point is None or pd.notna(row.error) or (isinstance(role, str) and role != TIMED):
            continue
        tokens = None if pd.isna(row.output_tokens) else int(row.output_tokens)
        found._add(*point, Sample(row.prompt_id, row.text, tokens), row.finish_reason)
    return found
