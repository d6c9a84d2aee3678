"""vLLM's log and metrics (V1 engine).

Forms read from the source of vLLM 0.32.0 and seen in runs of its CPU build: v1/spec_decode/metrics.py
(SpecDecoding line, counters), v1/metrics/loggers.py (Engine line, gauges), logging_utils/formatter.py (every
line of a many-line message repeats the prefix, and all but the last end in a carriage return),
v1/engine/core.py and v1/executor/multiproc_executor.py (deaths). Releases before 0.32 print the main process
without "(APIServer pid=N)", and up to about 0.10 the acceptance line begins with the rate.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, cast

from runners.readers.accept_rates import ACCEPTED_OVER_DRAFTED
from runners.readers.causes import ROOT, Errors
from runners.readers.prometheus import by_position, count, samples, total
from runners.readers.records import (
    AcceptanceRecord,
    Counters,
    LogReading,
    Phases,
    PhaseTracker,
    after_bar,
    blank_record,
    match_phase,
    pieces,
    without_collector,
)

ENGINE = "vllm"

PHASES: Phases = [
    ("importing", re.compile(r"\] non-default args: |vLLM API server version")),
    ("starting ranks", re.compile(r"\] Initializing a V1 LLM engine")),
    (
        "loading weights",
        re.compile(r"\] Starting to load model |Loading \w+ checkpoint shards:|Multi-thread loading \w*shards:"),
    ),
    # The CPU build prints this for the n-gram drafter too, which loads nothing.
    ("loading drafter", re.compile(r"\] Loading drafter model")),
    (
        "profiling",
        re.compile(
            r"\] (?:Model loading took|Warming up model for the compilation|Available KV cache memory"
            r"|(?:GPU|CPU) KV cache size|Explicitly set \()"
        ),
    ),
    ("capturing graphs", re.compile(r"Capturing CUDA graphs? |Capturing CUDA graphs?\b.*%\|")),
    (
        "starting server",
        re.compile(r"\] Starting vLLM (?:API )?server |INFO: +Waiting for application startup"),
    ),
    ("ready", re.compile(r"INFO: +Application startup complete")),
]
phase_of = match_phase(PHASES)

# "(EngineCore pid=7) ERROR 11-29 16:24:59 [core.py:1510] text"; the process part only where it is decorated.
_PREFIX = re.compile(
    r"(?P<process>\((?P<who>[A-Za-z][\w .=-]*?) pid=\d+\) ?)?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<at>\d\d-\d\d \d\d:\d\d:\d\d)\S* "
    r"\[(?:[^\]]*/)?(?P<file>[^\]:/]+):\d+\] ?)?"
)
# Every part is optional: it matches any line, if only with nothing.
_prefix_of = cast("Callable[[str], re.Match[str]]", _PREFIX.match)
# Read only behind the name of the file that writes them: an echoed prompt may hold the same words.
_SPEC_FILE, _ENGINE_FILES = "metrics.py", ("loggers.py", "metrics.py")
_SPEC = "SpecDecoding metrics: "
_ENGINE = re.compile(r"(?:(?:Engine \d+|\d+ Engines Aggregated): )?Avg prompt throughput: ")
# Both lines in today's form, in one scan; any other form goes through `acceptance_of` and `_engine_line`.
USUAL = re.compile(
    r"(?:\([A-Za-z][\w .=-]*? pid=\d++\) ?)?INFO \d\d-\d\d \d\d:\d\d:\d\d \["
    r"(?:metrics\.py:\d++\] SpecDecoding metrics: Mean acceptance length: (\d++\.\d++), Accepted throughput: [\d.]++ "
    r"tokens/s, Drafted throughput: [\d.]++ tokens/s, Accepted: (\d++) tokens, Drafted: (\d++) tokens, "
    r"Per-position acceptance rate: (\d++\.\d++(?:, \d++\.\d++)*+), Avg Draft acceptance rate: (\d++\.\d++)%$"
    r"|loggers\.py:\d++\] Engine \d++: Avg prompt throughput: [\d.]++ tokens/s, Avg generation throughput: "
    r"(\d++\.\d++) tokens/s, Running: (\d++) reqs, Waiting: (\d++) reqs, )"
)
_NUMBER = r"(\d+\.\d+|nan)"
_FIELDS = (
    re.compile(rf"Mean acceptance length: {_NUMBER}"),
    re.compile(r"\bAccepted: (\d+) tokens"),
    re.compile(r"\bDrafted: (\d+) tokens"),
    re.compile(r"Per-position acceptance rate: ((?:\d+\.\d+|nan)(?:, (?:\d+\.\d+|nan))*)"),
    re.compile(rf"[Dd]raft acceptance rate: {_NUMBER}%"),
)
_GENERATION = re.compile(r"Avg generation throughput: (\d+\.\d+)")
_RUNNING = re.compile(r"Running: (\d+) reqs")
_WAITING = re.compile(r"Waiting: (\d+) reqs")
_FATAL = re.compile(
    r"EngineCore (?:failed to start|encountered a fatal error)|EngineDeadError|WorkerProc failed"
    r"|Engine core initialization failed|died unexpectedly"
)
_STOP = re.compile(r"\[shutdown\] API server: shutdown triggered|trigger received signal=|INFO: +Shutting down")
_ANSWERED = re.compile(r'"POST /\S+ HTTP/[\d.]+" 200')
# Warnings of Python and PyTorch, banners, progress bars: not vLLM's form, but nothing new either.
_FOREIGN = re.compile(r"\[?[WIE]\d{4} |.*Warning: |  |.*\d+%\|| *$|.*% Completed \||Process \w|.*it/s\]")


LENGTH_FIRST, RATE_FIRST = "acceptance line with length first", "acceptance line with rate first"
EngineLine = tuple[int | None, int | None, float | None]  # running and waiting requests, output tokens/s
NOTHING_YET: EngineLine = (None, None, None)


def _float(text: str | None) -> float | None:
    return None if text is None or text == "nan" else float(text)


def _record(
    line: str,
    length: str | None,
    accepted: str,
    drafted: str,
    positions: str | None,
    rate: str | None,
    engine_line: EngineLine = NOTHING_YET,
) -> AcceptanceRecord:
    """The record of a line from its fields as printed, and from the Engine line before it."""
    a, d, percent = int(accepted), int(drafted), _float(rate)
    record = blank_record()
    record.line = line
    record.accept_length = _float(length)
    record.printed_rate = None if percent is None else percent / 100
    record.definition = ACCEPTED_OVER_DRAFTED
    record.accepted, record.drafted = a, d
    record.per_position = None if positions is None or "nan" in positions else [float(x) for x in positions.split(", ")]
    record.recomputed_rate = a / d if d else None
    record.running, record.queued, record.throughput = engine_line
    record.idle = not d
    return record


def acceptance_of(line: str) -> AcceptanceRecord | None:
    """The record of a "SpecDecoding metrics" line (either order of fields), or None for any other line.

    The rate is printed in per cent and kept as a fraction. "nan" (nothing drafted) becomes None, and idle is set.
    """
    line = line.rstrip()
    prefix = _prefix_of(line)
    body = line[prefix.end() :]
    if prefix["file"] != _SPEC_FILE or not body.startswith(_SPEC):
        return None
    length, accepted, drafted, positions, rate = (found[1] if (found := f.search(body)) else None for f in _FIELDS)
    if accepted is None or drafted is None:
        return None
    return _record(line, length, accepted, drafted, positions, rate)


def read_counters(metrics_text: str, **_extra: Any) -> Counters:
    """Counters of a /metrics answer, summed over engines (data-parallel ranks) and models.

    `steps` counts drafts that were verified; see `Counters` for what that means with an n-gram drafter.
    """
    spec = "vllm:spec_decode_num_"
    found = samples(metrics_text, (spec, "vllm:generation_tokens", "vllm:num_requests_"))
    return Counters(
        steps=count(found, spec + "drafts_total"),
        drafted=count(found, spec + "draft_tokens_total"),
        accepted=count(found, spec + "accepted_tokens_total"),
        accepted_per_position=by_position(found, spec + "accepted_tokens_per_pos_total"),
        output_tokens=count(found, "vllm:generation_tokens_total"),
        running=total(found, "vllm:num_requests_running"),
        queued=total(found, "vllm:num_requests_waiting"),
        source="vllm /metrics",
    )


def tracker() -> PhaseTracker:
    """Follows the load phases of one log, line by line."""
    return PhaseTracker(phase_of, first="importing")


@without_collector
def read_log(lines: Iterable[str], num_draft_tokens: int | None = None) -> LogReading:
    """Read a whole log. num_draft_tokens is not needed here: the lines have the counts.

    running_max is the largest of the figures printed every 10 s: a lower bound.
    """
    reading = LogReading(ENGINE)
    phases = tracker()
    errors = Errors(ENGINE, lambda: phases.current)
    served = False
    engine_line = NOTHING_YET
    records, usual, number = reading.acceptance, USUAL.match, 0
    for number, raw in enumerate(lines, 1):  # noqa: B007 - the number of lines is needed after the loop
        line = raw.rstrip()
        # A carriage return can hide a progress bar in front of a usual line: cut such a line into pieces first.
        if (found := usual(line)) is not None and "\r" not in line:
            length, accepted, drafted, positions, rate, throughput, running, waiting = found.groups()
            if throughput is None:
                records.append(_record(line, length, accepted, drafted, positions, rate, engine_line))
                reading.generation, served = LENGTH_FIRST, True
            else:
                at_work, tokens_per_second = int(running), float(throughput)
                engine_line = at_work, int(waiting), tokens_per_second
                reading.running_max = max(at_work, reading.running_max or 0)
                served = served or bool(tokens_per_second and phases.ready)
            continue
        for line in pieces(raw) if "\r" in line else (line,):  # noqa: B020
            # uvicorn's access lines, most of a busy server's log: no more work than needed.
            if '" 200' in line and (line.startswith("INFO:     ") or ") INFO:     " in line[:48]):
                served = served or (phases.ready and _ANSWERED.search(line) is not None)
                continue
            prefix = _prefix_of(line)
            level, process = prefix["level"], prefix["process"]
            # Another process wrote behind an unfinished progress bar: the bar may name a phase, the rest is a log line.
            if level is None and process is None and (tail := after_bar(line)):
                phases.feed(line)
                line = tail
                prefix = _prefix_of(line)
                level, process = prefix["level"], prefix["process"]
            body = line[prefix.end() :]
            if prefix["file"] == _SPEC_FILE and body.startswith(_SPEC):
                if (record := acceptance_of(line)) is None:
                    reading.unknown(line)
                    continue
                record.running, record.queued, record.throughput = engine_line
                records.append(record)
                first = body.startswith(_SPEC + "Draft acceptance rate")
                reading.generation, served = RATE_FIRST if first else LENGTH_FIRST, True
                continue
            if prefix["file"] in _ENGINE_FILES and _ENGINE.match(body):
                engine_line = _engine_line(body)
                if engine_line[0] is None:
                    reading.unknown(line)
                    continue
                reading.running_max = max(engine_line[0], reading.running_max or 0)
                served = served or bool(engine_line[2] and phases.ready)
                continue
            phase = phases.feed(line, prefix["at"])
            if phase and phase.name == "restarted":
                errors.restart()
                served = False
            errors.stopping = errors.stopping or _STOP.search(line) is not None
            # A traceback that is logged as a warning or less was handled.
            loud = level in (None, "ERROR", "CRITICAL")
            source = process or ("main" if level else "")
            in_traceback = errors.feed(body, source, prefix["who"] or "", silent=not loud)
            if loud and _FATAL.search(body):
                errors.mark_fatal(phases.ready or served)
                if "died unexpectedly" in body:
                    errors.add(body, prefix["who"] or "", ROOT)
            if not (in_traceback or level or process or line.startswith("INFO:     ") or _FOREIGN.match(line)):
                reading.unknown(line)
    reading.lines = number
    return errors.conclude(reading, phases, served)


def _engine_line(line: str) -> EngineLine:
    """The figures of an Engine line; None for each that is not there."""
    running, waiting, throughput = _RUNNING.search(line), _WAITING.search(line), _GENERATION.search(line)
    return (
        int(running[1]) if running else None,
        int(waiting[1]) if waiting else None,
        float(throughput[1]) if throughput else None,
    )


def first_error(lines: Iterable[str]) -> tuple[str, str] | None:
    """(cause sentence, kind) of the first real exception of any process, or None."""
    return read_log(lines).first_error()
