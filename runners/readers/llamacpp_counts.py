"""Counts that llama.cpp's log prints beside the acceptance line of each answer.

    statistics draft-mtp: #calls(b,g,a) = 2 134 134, #gen drafts = 134, ..., #gen tokens = 536, #acc tokens = 354
        one line a drafter and answer; the counts are since the server's start
    eval time = 2278.66 ms / 24 tokens
        the tokens of an answer: with those accepted they tell how many decode steps had no draft at all
    adaptive draft depth ...: 3 -> 4 (... cur_accepted=3), adaptive n : 3 -> 4 (... n_draft=3, n_accepted=3)
        one step of one answer; only steps after which the depth changed are printed

Read from common/speculative.cpp and docs/speculative.md of ggml-org/llama.cpp, the adaptive depth from pull request
27210 and its forks.
"""

import re
from collections.abc import Sequence

from runners.readers.pooled import steps_of, telling, weights_of
from runners.readers.records import AcceptanceRecord, Counters

_STATISTICS = re.compile(r"(?:\w+(?: +\w+)?: )?statistics +(?P<name>[\w-]+):? +#calls")
_COUNT = re.compile(r"#(gen drafts|gen tokens|acc tokens) = *(\d+)")
_RATES = re.compile(r"#acc rate/pos = \((\d+\.\d+(?:, \d+\.\d+)*)\)")
_ADAPTIVE = re.compile(r"(?:\w+(?: +\w+)?: )?adaptive (?:draft depth|n)\b")
_TOKENS = re.compile(r" / +(\d+) tokens")
_STEP = re.compile(r"\b\w*(draft|accepted)\w*=(\d+)")


class Totals:
    """Collects these lines; `counters` is what they say together."""

    def __init__(self) -> None:
        self.answers: list[
            str
        ] = []  # lines with the time of an answer's tokens: kept here, and read at the end at once
        self._of_drafter: dict[tuple[str, str], str] = {}  # (child server, drafter) -> its last line
        self._steps = self._drafted = self._accepted = 0  # of adaptive depth

    def restart(self) -> None:
        """The server was started again into the same log: its counts begin anew."""
        self.answers.clear()
        self._of_drafter.clear()
        self._steps = self._drafted = self._accepted = 0

    def feed(self, body: str, child: str | None) -> bool:
        """Any other line without its prefix; True if it held counts. child: its server's number in router mode."""
        if found := _STATISTICS.match(body):
            self._of_drafter[child or "", found["name"]] = body
            return True
        if not _ADAPTIVE.match(body):
            return False
        counts = {what: int(value) for what, value in reversed(_STEP.findall(body))}
        if "accepted" in counts:
            self._steps += 1
            self._accepted += counts["accepted"]
            self._drafted += counts.get("draft", 0)
        return True

    def counters(self, records: Sequence[AcceptanceRecord], whole: bool) -> Counters | None:
        """The counts of this text; None where it has none.

        records: of the answers' acceptance lines. whole: the text begins with the server's start, so that the answers
        in it are all that the statistics count.
        """
        tokens = [int(n) for n in _TOKENS.findall("\n".join(self.answers))]
        if self._of_drafter:
            return self._from_statistics(tokens if whole else [])
        if tokens and (told := telling(records)):
            return _from_answers(told, tokens)
        if self._steps and not records:
            return Counters(
                steps=self._steps,
                drafted=self._drafted or None,
                accepted=self._accepted,
                source=f"{self._steps} steps after which the draft depth changed",
            )
        return None

    def _from_statistics(self, tokens: list[int]) -> Counters:
        """The last line of each drafter. tokens: of all answers since the start, where they are in this text."""
        rows = list(self._of_drafter.values())
        counts = [{name: int(value) for name, value in _COUNT.findall(row)} for row in rows]
        steps, drafted, accepted = (_sum(counts, name) for name in ("gen drafts", "gen tokens", "acc tokens"))
        rates = _RATES.search(rows[0]) if len(rows) == 1 else None
        return Counters(
            steps=steps,
            drafted=drafted,
            accepted=accepted,
            accepted_per_position=[round(float(r) * steps) for r in rates[1].split(", ")] if rates and steps else None,
            output_tokens=sum(tokens) or None,
            requests=len(tokens) or None,
            source="statistics lines of the log",
        )


def _from_answers(told: Sequence[AcceptanceRecord], tokens: list[int]) -> Counters:
    """The sums over the answers in this text; tokens: of each answer."""
    # A line whose length reads 1.00 does not tell its steps: the others say how many drafts a step takes.
    known = any(steps_of(r) for r in told)
    return Counters(
        steps=round(sum(weights_of(told))) if known else None,
        drafted=sum(r.drafted or 0 for r in told),
        accepted=sum(r.accepted or 0 for r in told),
        output_tokens=sum(tokens),
        requests=len(tokens),
        source=f"{len(tokens)} answers in the log",
    )


def _sum(counts: Sequence[dict[str, int]], name: str) -> int | None:
    """The sum of a count over all drafters; None where one of them does not print it."""
    return sum(c[name] for c in counts) if all(name in c for c in counts) else None
