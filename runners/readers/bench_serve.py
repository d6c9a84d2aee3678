"""The block about speculation that `vllm bench serve` prints at its end, and SGLang's `bench_serving`.

vLLM (benchmarks/serve.py): "Acceptance rate (%):", "Acceptance length:", "Drafts:", "Draft tokens:", "Accepted
tokens:", then "Position 0:" and so on in per cent. SGLang (bench_serving.py): "Accept length:". Both are over all
requests of the run.
"""

import re
from collections.abc import Iterable

from runners.readers.records import NOT_TOLD, AcceptanceRecord, LogReading

_FIELD = re.compile(r"\s*([A-Z][\w ()/%-]*?): +(\d+(?:\.\d+)?)\s*$")
_POSITION = re.compile(r"Position (\d+)$")
_RATE, _LENGTH, _LENGTH_SGLANG, _DRAFTED, _ACCEPTED, _THROUGHPUT = (
    "Acceptance rate (%)",
    "Acceptance length",
    "Accept length",
    "Draft tokens",
    "Accepted tokens",
    "Output token throughput (tok/s)",
)
_OWN = {_RATE, _LENGTH, _LENGTH_SGLANG}  # what makes it a block about speculation


def read_bench(lines: Iterable[str]) -> LogReading | None:
    """The acceptance in the output of a benchmark, a record for each run; None without such a block."""
    lines = list(lines)
    runs: list[dict[str, str]] = [{}]
    kept: list[list[str]] = [[]]
    for line in lines:
        if not (found := _FIELD.match(line)):
            continue
        name, value = found[1], found[2]
        if name in runs[-1]:  # the same figure again: the next run
            runs.append({})
            kept.append([])
        runs[-1][name] = value
        kept[-1].append(line.strip())
    records = [_record(run, "\n".join(text)) for run, text in zip(runs, kept, strict=True) if run.keys() & _OWN]
    if not records:
        return None
    engine = "sglang" if any(_LENGTH_SGLANG in run for run in runs) else "vllm"
    return LogReading(
        engine,
        engine_certainty="certain",
        generation="output of a serving benchmark",
        excerpt=True,
        acceptance=records,
        outcome=NOT_TOLD,
        lines=len(lines),
    )


def _record(run: dict[str, str], text: str) -> AcceptanceRecord:
    drafted, accepted = (int(float(run[name])) if name in run else None for name in (_DRAFTED, _ACCEPTED))
    length = run.get(_LENGTH, run.get(_LENGTH_SGLANG))
    at_positions = {int(found[1]): float(run[name]) / 100 for name in run if (found := _POSITION.match(name))}
    return AcceptanceRecord(
        line=text,
        accept_length=float(length) if length else None,
        printed_rate=float(run[_RATE]) / 100 if _RATE in run else None,
        accepted=accepted,
        drafted=drafted,
        per_position=[at_positions[i] for i in sorted(at_positions)] or None,
        recomputed_rate=accepted / drafted if drafted and accepted is not None else None,
        throughput=float(run[_THROUGHPUT]) if _THROUGHPUT in run else None,
    )
