"""What the base of a configuration answered so far: the texts and the samples that the other's cells are judged by."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from runners.measure.client import OWN_ENDS, TIMED, Result
from runners.measure.ledger import Ledger

SHORTEST_CUT = 40  # characters


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

    full: dict[str, list[Text]] = field(default_factory=dict)  # prompt id -> its distinct answers in full
    cut: dict[str, Text] = field(default_factory=dict)  # prompt id -> the longest answer that was cut
    samples: dict[tuple[str, int], list[Sample]] = field(default_factory=lambda: defaultdict(list))

    @property
    def texts(self) -> dict[str, list[Text]]:
        """prompt id -> what to compare with: answers in full, or the longest one that was cut where there is none."""
        return {prompt: [text] for prompt, text in self.cut.items()} | self.full

    def add(self, workload: str, concurrency: int, results: Sequence[Result]) -> None:
        """One cell that passed its own gates: two wrong engines must not confirm each other."""
        for r in results:
            if r.error is not None:
                continue
            if r.role == TIMED:
                self._add(workload, concurrency, Sample(r.prompt_id, r.text, r.output_tokens), r.finish_reason)
            # A text cut after a word would be "equal" to anything that begins with that word.
            elif len(r.text) >= max(SHORTEST_CUT, len(self.cut.get(r.prompt_id, Text("")).text) + 1):
                self.cut[r.prompt_id] = Text(r.text)

    def _add(self, workload: str, concurrency: int, sample: Sample, finish_reason: str | None) -> None:
        self.samples[workload, concurrency].append(sample)
        text, known = Text(sample.text, finish_reason in OWN_ENDS), self.full.setdefault(sample.prompt_id, [])
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
