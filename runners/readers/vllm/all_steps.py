"""The decode steps behind vLLM's acceptance lines, those without a draft included.

An acceptance line counts steps with a draft only. But it prints drafted tokens and drafted tokens per second, so it
tells the length of its interval, and the Engine line before it the output tokens per second of the same interval
(v1/metrics/loggers.py writes both).
"""

import re
from collections.abc import Sequence

from runners.readers.pooled import telling, weights_of
from runners.readers.records import AcceptanceRecord, Counters

_DRAFTED_A_SECOND = re.compile(r"Drafted throughput: (\d+\.\d+) tokens/s")


def totals_of(records: Sequence[AcceptanceRecord]) -> Counters | None:
    """Counts over the intervals of these lines; None where no line tells the length of its interval."""
    whole = [(r, seconds) for r in telling(records) if r.throughput and (seconds := _seconds(r))]
    if not whole:
        return None
    told = [r for r, _ in whole]
    return Counters(
        steps=round(sum(weights_of(told))),
        drafted=sum(r.drafted or 0 for r in told),
        accepted=sum(r.accepted or 0 for r in told),
        output_tokens=round(sum((r.throughput or 0.0) * seconds for r, seconds in whole)),
        source="intervals of the log",
    )


def _seconds(record: AcceptanceRecord) -> float | None:
    """The length of a line's interval."""
    found = _DRAFTED_A_SECOND.search(record.line)
    return (record.drafted or 0) / float(found[1]) if found and float(found[1]) else None
