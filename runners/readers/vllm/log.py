"""vLLM's log (its acceptance and Engine lines are in lines.py, its load phases in phases.py).

Forms read from the source of vLLM 0.32.0 and seen in runs of its CPU build: v1/spec_decode/metrics.py
(SpecDecoding line, counters), v1/metrics/loggers.py (Engine line, gauges), logging_utils/formatter.py (every
line of a many-line message repeats the prefix, and all but the last end in a carriage return),
v1/engine/core.py and v1/executor/multiproc_executor.py (deaths),
distributed/device_communicators/shm_broadcast.py and v1/engine/utils.py (waiting).
"""

import re
from collections.abc import Iterable

from runners.readers.causes import ROOT, Errors, advise_stall
from runners.readers.log_lines import clock_of
from runners.readers.records import LogReading, after_bar, pieces, without_collector
from runners.readers.stalls import Stall
from runners.readers.vllm.lines import (
    ENGINE_FILES,
    ENGINE_LINE,
    NOTHING_YET,
    SPEC,
    SPEC_FILE,
    SPEC_V0,
    USUAL,
    Load,
    SinceStart,
    acceptance_in,
    at_of,
    engine_figures,
    prefix_of,
    record_of,
)
from runners.readers.vllm.phases import note_seconds, tracker

ENGINE = "vllm"
LENGTH_FIRST, RATE_FIRST = "acceptance line with length first", "acceptance line with rate first"
COUNTS_SINCE_START = "V0 acceptance line, counts since the start"

_FATAL = re.compile(
    r"EngineCore (?:failed to start|encountered a fatal error)|EngineDeadError"
    r"|WorkerProc (?:failed|hit an exception)|Engine core initialization failed|died unexpectedly"
    r"|Engine loop (?:is dead|has died)|Background loop has errored"
)
_STOP = re.compile(
    r"\[shutdown\] API server: shutdown triggered|trigger received signal=|INFO: +Shutting down"
    r"|Application shutdown complete"
)
_ANSWERED = re.compile(r'"POST /\S+ HTTP/[\d.]+" 200')
# Warnings of Python and PyTorch, banners, progress bars: not vLLM's form, but nothing new either.
_FOREIGN = re.compile(r"\[?[WIE]\d{4} |.*Warning: |  |.*\d+%\|| *$|.*% Completed \||Process \w|.*it/s\]")
# What the engine says it waits for, and for how many seconds, once in each such time.
_WAITS = (
    (re.compile(r"No available (?:shared memory broadcast )?block found in (\d+) second"), "a worker's step"),
    (re.compile(r"Waiting for \d+ local, \d+ remote core engine proc"), "engine processes to start"),
)
_EVERY = 10  # seconds between two lines of waiting for processes, and between two Engine lines
_NO_TOKEN = "a token: requests run and none comes"


@without_collector
def read_log(lines: Iterable[str], num_draft_tokens: int | None = None) -> LogReading:
    """Read a whole log. num_draft_tokens is not needed here: the lines have the counts.

    running_max is the largest of the figures printed every 10 s, summed over the engines of a data-parallel group: a
    lower bound.
    """
    reading = LogReading(ENGINE)
    phases, since_start, stall, clock = tracker(), SinceStart(), Stall(at_of), clock_of(lines)
    errors = Errors(ENGINE, lambda: phases.current)
    served, moved = False, ""  # moved: the last line that shows progress
    engine_line = NOTHING_YET
    load = Load()
    records, usual, number = reading.acceptance, USUAL.match, 0
    for number, raw in enumerate(lines, 1):  # noqa: B007 - the number of lines is needed after the loop
        line = raw.rstrip()
        # A carriage return can hide a progress bar in front of a usual line: cut such a line into pieces first.
        if (found := usual(line)) is not None and "\r" not in line:
            length, accepted, drafted, positions, rate, engine, throughput, running, waiting = found.groups()
            if throughput is None:
                records.append(record_of(line, length, accepted, drafted, positions, rate, engine_line))
                load.before, reading.generation, served = 0.0, LENGTH_FIRST, True
                moved = line if drafted != "0" else moved
            else:
                tokens_per_second = float(throughput)
                at_work = int(running)
                engine_line = at_work, int(waiting), tokens_per_second
                now = load.add(engine, at_work, tokens_per_second)
                if tokens_per_second or _moves(line, now):
                    served, moved = served or bool(tokens_per_second), line
                else:
                    stall.wait(_NO_TOKEN, line, _EVERY, moved)
            continue
        for line in pieces(raw) if "\r" in line else (line,):  # noqa: B020
            # uvicorn's access lines, most of a busy server's log: no more work than needed.
            if '" 200' in line and (line.startswith("INFO: ") or ") INFO: " in line[:96]):
                served = served or _ANSWERED.search(line) is not None
                continue
            prefix = prefix_of(line)
            level, process, file = prefix["level"], prefix["process"], prefix["file"]
            # Another process wrote behind an unfinished progress bar: the bar may name a phase, the rest is a log line.
            if level is None and not process and (tail := after_bar(line)):
                phases.feed(line, clock())
                line = tail
                prefix = prefix_of(line)
                level, process, file = prefix["level"], prefix["process"], prefix["file"]
            body = line[prefix.end() :]
            if file in (SPEC_FILE, None) and body.startswith((SPEC, SPEC_V0)):
                v0 = body.startswith(SPEC_V0)
                record = since_start.acceptance_in(line, body) if v0 else acceptance_in(line, body, cut=file is None)
                if record is None:
                    reading.unknown(line)
                    continue
                record.running, record.queued, record.throughput = engine_line
                records.append(record)
                first = RATE_FIRST if body.startswith(SPEC + "Draft acceptance rate") else LENGTH_FIRST
                load.before, reading.generation, served = 0.0, COUNTS_SINCE_START if v0 else first, True
                moved = line if record.drafted else moved
                continue
            if (file is None or file in ENGINE_FILES) and (of_engine := ENGINE_LINE.match(body)):
                engine_line = engine_figures(body)
                if engine_line[0] is None:
                    reading.unknown(line)
                    continue
                now = load.add(of_engine[1] or "", engine_line[0], engine_line[2] or 0.0)
                if engine_line[2] or _moves(body, now):
                    served, moved = served or bool(engine_line[2]), line
                else:
                    stall.wait(_NO_TOKEN, line, _EVERY, moved)
                continue
            phase = phases.feed(line, prefix["at"] or clock())
            if phase and phase.name == "restarted":
                errors.restart()
                served = False
                load.restart()
            note_seconds(phases, body)
            errors.stopping = errors.stopping or _STOP.search(line) is not None
            # A traceback that is logged as a warning or less was handled.
            loud = level in (None, "ERROR", "CRITICAL")
            source = process or ("main" if level else "")
            of_error = errors.feed(body, source, prefix["who"] or "", silent=not loud, logged=level is not None)
            if loud and _FATAL.search(body):
                errors.mark_fatal(phases.ready or served)
                if "died unexpectedly" in body:
                    errors.add(body, prefix["who"] or "", ROOT)
            what, seconds = _waiting(body)
            # An idle server's processes wait too.
            if what and not (load.idle if load.idle is not None else phases.ready and not served):
                stall.wait(what, line, seconds, moved)
            elif phase or (level and not loud and not (what or served or phases.ready)):
                moved = line  # while loading any line is progress
            if not (of_error or level or phase or what or body.startswith("INFO: ") or _FOREIGN.match(body)):
                reading.unknown(line)
    reading.lines, reading.running_max = number, load.most
    reading.plain_throughputs = [] if records else load.plain
    errors.conclude(reading, phases, served)
    stall.conclude(reading, moved)
    return advise_stall(reading)


def _moves(engine_line: str, running: int) -> bool:
    """Whether an Engine line without a generated token is none of a stall: prompts were read, or nothing runs."""
    return not running or "Avg prompt throughput: 0.0 " not in engine_line


def _waiting(body: str) -> tuple[str, int]:
    """What this line says the engine waits for, and for how many seconds; "" for any other line."""
    for form, what in _WAITS:
        if found := form.search(body):
            return what, int(found[1]) if found.groups() else _EVERY
    return "", 0


def first_error(lines: Iterable[str]) -> tuple[str, str] | None:
    """(cause sentence, kind) of the first real exception of any process, or None."""
    return read_log(lines).first_error()
