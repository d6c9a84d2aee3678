"""The reading of any text that an engine or its benchmark wrote: a whole log, an excerpt of one, the JSON of an answer.

A collector's prefixes are taken off first (log_lines.py); then it is seen whose text it is (recognise.py).
"""

from collections.abc import Iterable

from runners.readers.answer_json import read_answer
from runners.readers.bench_serve import read_bench
from runners.readers.log_lines import SAMPLE, LogLines
from runners.readers.recognise import NAMED, Recognition, recognise
from runners.readers.records import LogReading
from runners.readers.registry import reader


def read_text(
    lines: Iterable[str], engine: str | None = None, num_draft_tokens: int | None = None
) -> LogReading | None:
    """What these lines tell; None when they are no text of an engine that has a reader.

    engine: whose text it is, where somebody knows. num_draft_tokens: SGLang's setting, where the log does not show it.
    """
    log = LogLines(lines)
    whole = len(log.raw_sample) < SAMPLE
    if whole and (answer := read_answer("".join(log.raw_sample))) and engine in (None, answer.engine):
        return answer
    found = Recognition((engine,), NAMED) if engine else recognise(log.sample)
    bench = read_bench(log.sample)
    if bench and engine not in (None, bench.engine):
        bench = None
    if found is None:
        return bench
    reading: LogReading = reader(found.engines[-1]).read_log(log, num_draft_tokens)
    if bench and not reading.phases and not reading.acceptance:
        return bench
    reading.engine_certainty = found.certainty
    if len(found.engines) > 1:
        _of_either(reading, found.engines)
    return reading


def _of_either(reading: LogReading, engines: tuple[str, ...]) -> None:
    """Several engines could have written this: name them all."""
    one, either = reading.engine, " or ".join(engines)
    reading.engine = either
    if reading.cause and reading.cause.startswith(f"{one} "):
        reading.cause = either + reading.cause.removeprefix(one)
