"""SGLang's decode line: its fields, in whatever order, and the records made of them once a whole log is known.

What the printed accept rate means shows only from all lines of a server together (rates.py), so lines are first told
apart and made into records in the end. The forms are those named in sglang.py.
"""

import re

from runners.readers.rates import UNKNOWN_DEFINITION, infer, recomputed
from runners.readers.records import AcceptanceRecord

BEGIN = "Decode batch"
# As they are printed: running requests, accept length, accept rate, output tokens/s, queued requests.
Fields = tuple[str, str | None, str | None, str, str]
Told = tuple[str, Fields, bool]  # a line, its fields, idle

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
        int(running), int(queued), float(throughput), float(length or 0), float(rate or 0)
    except (TypeError, ValueError):
        return None
    return None if length is None and rate is not None else (running, length, rate, throughput, queued)


def records_of(
    told: list[Told], num_draft_tokens: int | None = None, definition: str | None = None
) -> tuple[list[AcceptanceRecord], str]:
    """(the records of lines that have an accept length, what their printed rate means).

    num_draft_tokens is drafts plus one, inferred from the lines where it is not given, as is the definition.
    """
    # Printed to two decimals, so the distinct pairs are few: each is read once.
    pairs = {(length, rate) for _, (_, length, rate, _, _), _ in told}
    read = {pair: (float(pair[0]), None if pair[1] is None else float(pair[1])) for pair in pairs}
    rated = [pair for pair in read.values() if pair[1] is not None]
    inferred, number = infer(rated, num_draft_tokens)
    definition = definition or (inferred if rated else UNKNOWN_DEFINITION)
    known = {
        pair: (*numbers, definition, None, None, None, recomputed(*numbers, definition, number))
        for pair, numbers in read.items()
    }
    return [
        AcceptanceRecord(line, *known[length, rate], int(running), int(queued), float(throughput), idle)
        for line, (running, length, rate, throughput, queued), idle in told
    ], definition


def _value(line: str, name: str) -> str | None:
    """The value of a `name: value` field of a decode line; `name` comes with what must stand before it."""
    at = line.find(name)
    if at < 0:
        return None
    at += len(name)
    end = line.find(",", at)
    return line[at:] if end < 0 else line[at:end]
