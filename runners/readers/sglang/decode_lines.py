"""SGLang's decode line: its fields, in whatever order, and the records made of them.

What the printed accept rate means shows only from all lines of a server together (rates.py), so records are settled in
the end. The forms are those named in sglang.py.
"""

import re

from runners.readers.accept_rates import UNKNOWN_DEFINITION, infer, recomputed
from runners.readers.records import AcceptanceRecord

BEGIN = "Decode batch"
# As they are printed: running requests, accept length, accept rate, output tokens/s, queued requests.
Fields = tuple[str, str | None, str | None, str, str]

# The usual form in one scan; any other order or selection of fields goes through `fields_of`.
USUAL = re.compile(
    r"\[\d[^\]\r]{6,70}+\] Decode batch(?: \[\d+\])?[.,] #running-req: (\d++), "
    r"(?:#token: \d++, token usage: [\d.]++, |(?:[#tfsm][^,\r]*+, )*+)"
    r"(?:accept len: (\d++\.\d++), accept rate: (\d++\.\d++), )?+(?:[a-z]++ graph: \w++, )?+"
    r"gen throughput \(token/s\): (\d++\.\d++), #queue-req: (\d++)(?:, [^\r]*)?$"
)


def body_at(line: str) -> int:
    """Where the message of a prefixed line begins, or -1."""
    at = line.find("] ", 8, 72) + 2
    return at if at > 1 and line[0] == "[" and line[1].isdigit() else -1


def fields_of(line: str) -> Fields | None:
    """Fields of a decode line by name, whatever their order; None if its form is not known any more."""
    # With the comma: newer lines also have "block accept len".
    length, rate = _value(line, ", accept len: "), _value(line, ", accept rate: ")
    running, queued = _value(line, "#running-req: "), _value(line, ", #queue-req: ")
    throughput = _value(line, ", gen throughput (token/s): ")
    try:
        int(running), int(queued), float(throughput)
        for printed in (length, rate):
            if printed is not None:  # an empty one is no number either
                float(printed)
    except (TypeError, ValueError):
        return None
    return None if length is None and rate is not None else (running, length, rate, throughput, queued)


class Records:
    """The records of a log's decode lines that have an accept length, in the order of the lines.

    Printed to two decimals, the distinct pairs of accept length and rate are few: what belongs to a pair is worked out
    once.
    """

    def __init__(self) -> None:
        self.records: list[AcceptanceRecord] = []
        self._of_pair: dict[tuple[str, str | None], tuple[float, float | None, list[AcceptanceRecord]]] = {}

    def add(self, line: str, fields: Fields, idle: bool) -> None:
        """One line more, by the fields that USUAL or `fields_of` told, an accept length among them."""
        running, length, rate, throughput, queued = fields
        if (known := self._of_pair.get((length, rate))) is None:
            known = float(length), None if rate is None else float(rate), []
            self._of_pair[length, rate] = known
        record = AcceptanceRecord(
            line,
            known[0],
            known[1],
            UNKNOWN_DEFINITION,
            None,
            None,
            None,
            None,
            int(running),
            int(queued),
            float(throughput),
            idle,
        )
        self.records.append(record)
        known[2].append(record)

    def settle(self, num_draft_tokens: int | None = None, definition: str | None = None) -> str:
        """Give every record the meaning of its printed rate, inferred from all unless given, and accepted/drafted by
        it; returns that meaning. num_draft_tokens is drafts plus one, inferred as well where it is not given.
        """
        rated = [(length, rate) for length, rate, _ in self._of_pair.values() if rate is not None]
        inferred, number = infer(rated, num_draft_tokens)
        definition = definition or (inferred if rated else UNKNOWN_DEFINITION)
        for length, rate, own in self._of_pair.values():
            share = recomputed(length, rate, definition, number)
            for record in own:
                record.definition, record.recomputed_rate = definition, share
        return definition

    @property
    def rated(self) -> bool:
        """Whether any line has an accept rate."""
        return any(rate is not None for _, rate, _ in self._of_pair.values())


def _value(line: str, name: str) -> str | None:
    """The value of a `name: value` field of a decode line; `name` comes with what must stand before it."""
    at = line.find(name)
    if at < 0:
        return None
    at += len(name)
    end = line.find(",", at)
    return line[at:] if end < 0 else line[at:end]
