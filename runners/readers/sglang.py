"""SGLang's log (its metrics, /server_info and meta_info are in sglang_http.py and can be called from here).

Forms read from the wheels of SGLang 0.5.9, 0.5.10.post1 and 0.5.23 (paths under sglang/srt/): the decode
line in managers/scheduler_metrics_mixin.py, later observability/scheduler_metrics_mixin.py, then
managers/scheduler_components/metrics_reporter.py; load lines in model_executor/model_runner.py; graph lines
in speculative/eagle_worker*.py, later model_executor/model_runner_components/cuda_graph_setup.py; deaths in
managers/scheduler.py, managers/tokenizer_manager.py, entrypoints/engine.py, utils/watchdog.py. Older decode
lines ("Decode batch.", a time without a date, no accept rate) from reports in the project's issues. Log
lines carry no level.

The printed accept rate changed its meaning: accept_len/num_draft_tokens, the bonus token counted in, up to
0.5.10.post1; (accept_len - 1)/(num_draft_tokens - 1) from 0.5.11 on. 0.25 at length 1.00 is then no
acceptance at all.
"""

import re
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path

from runners.readers.causes import REFUSED, WRAPPER, Errors
from runners.readers.rates import (
    BONUS_COUNTED,
    LENGTH_LESS_ONE,
    UNKNOWN_DEFINITION,
    infer,
    recomputed,
)
from runners.readers.records import (
    AcceptanceRecord,
    Counters,
    LogReading,
    PhaseTracker,
    after_bar,
    match_phase,
    pieces,
    without_collector,
)
from runners.readers.sglang_counts import estimated, piece
from runners.readers.sglang_http import counters_from_meta_info, read_counters, read_server_info

__all__ = [
    "PHASES",
    "acceptance_of",
    "counters_from_meta_info",
    "counts_from_log",
    "first_error",
    "phase_of",
    "read_counters",
    "read_log",
    "read_server_info",
    "tracker",
]

ENGINE = "sglang"

_GRAPHS = r"(?:cuda|CUDA|cpu|npu) graph"
PHASES: list[tuple[str, re.Pattern]] = [
    ("starting", re.compile(r"\] server_args=ServerArgs\(")),
    ("joining ranks", re.compile(r"\] Init torch distributed begin")),
    (
        "loading weights",
        re.compile(r"\] Load weight begin\.|^Loading \w+ checkpoint shards:|^Multi-thread loading \w*"),
    ),
    # Begins with the words of "loading weights" again, which only `tracker` tells apart; this is its end.
    ("loading drafter", re.compile(r"\] Load weight end\. .*type=\w*(?:Eagle|NextN|MTP|DFlash)")),
    ("allocating memory", re.compile(r"\] (?:KV Cache is allocated|Memory pool end)")),
    (
        "capturing drafter graphs",
        re.compile(rf"\] Capture (?:draft\b|UNO tree draft|Frozen-KV MTP draft)[\w ]*? {_GRAPHS} begin"),
    ),
    ("capturing graphs", re.compile(rf"\] Capture (?:piecewise |target \w+ )?{_GRAPHS} (?:begin|bs)")),
    ("warming up", re.compile(r"INFO: +Application startup complete|Start of (?:pd )?disaggregation warmup")),
    ("ready", re.compile(r"\] The server is fired up and ready to roll!")),
]
phase_of = match_phase(PHASES)

# "[2026-01-31 12:00:00 TP0] " or, long ago, "[12:00:00 TP0] "; the rank part is absent in one-process groups.
_PREFIX = re.compile(r"\[(?P<at>(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(?:\.\d+)?)(?P<rank>(?: [A-Z_]+\d+)*)\] ")
_DECODE = "Decode batch"
_TROUBLE = re.compile(
    r"Traceback \(most|hit an exception|[Ss]igquit|SIGQUIT|SIGTERM|Gracefully exiting|watchdog timeout"
    r"|scheduler is dead|died during|crashed with exit code|Exit code: |Initialization failed|^Killed$"
    rf"|{REFUSED}"
)
_FATAL = re.compile(
    r"hit an exception|[Ss]igquit|SIGQUIT|scheduler is dead|died during|crashed with exit code"
    r"|Initialization failed|^Killed$|watchdog timeout.*soft=False"
)
_SAID = re.compile(
    r"Received sigquit|SIGQUIT received|Subprocess \w+|Rank \d+ scheduler|Exit code: |.*watchdog timeout"
    r"|Killed$"
)
_STOP = re.compile(r"\] (?:SIGTERM received|Gracefully exiting)")
_DRAFT_TOKENS = re.compile(r"speculative_num_draft_tokens=(\d+)")
_FOREIGN = re.compile(r"\[?[WIE]\d{4} |.*Warning: |  |.*\d+%\|| *$|.*% Completed \||.*(?:it/s|s/it)\]|INFO: ")


def _value(line: str, name: str) -> str | None:
    """The value of a `name: value` field of a decode line; `name` comes with what must stand before it."""
    at = line.find(name)
    if at < 0:
        return None
    at += len(name)
    end = line.find(",", at)
    return line[at:] if end < 0 else line[at:end]


def _body_at(line: str) -> int:
    """Where the message of a prefixed line begins, or -1."""
    at = line.find("] ", 8, 72) + 2
    return at if at > 1 and line[0] == "[" and line[1].isdigit() else -1


# The usual form in one scan; any other order or selection of fields goes through `_value`.
_USUAL = re.compile(
    r"\[\d[^\]\r]{6,70}+\] Decode batch(?: \[\d+\])?[.,] #running-req: (\d++), "
    r"(?:#token: \d++, token usage: [\d.]++, |(?:[#tfsm][^,\r]*+, )*+)"
    r"(?:accept len: (\d++\.\d++), accept rate: (\d++\.\d++), )?+(?:[a-z]++ graph: \w++, )?+"
    r"gen throughput \(token/s\): (\d++\.\d++), #queue-req: (\d++)(?:, [^\r]*)?$"
)


def _decode_line(line: str) -> AcceptanceRecord | None:
    """Fields of a decode line by name, whatever their order; None if its form is not known any more."""
    try:
        # With the comma: newer lines also have "block accept len".
        length, rate = _value(line, ", accept len: "), _value(line, ", accept rate: ")
        if length is None and rate is not None:
            return None
        return AcceptanceRecord(
            line,
            None if length is None else float(length),
            None if rate is None else float(rate),
            UNKNOWN_DEFINITION,
            running=int(_value(line, "#running-req: ")),
            queued=int(_value(line, ", #queue-req: ")),
            throughput=float(_value(line, ", gen throughput (token/s): ")),
        )
    except (TypeError, ValueError):
        return None


def acceptance_of(
    line: str, num_draft_tokens: int | None = None, definition: str | None = None
) -> AcceptanceRecord | None:
    """The record of a decode line with speculation, or None for any other line.

    The definition is inferred from this line alone unless given; `read_log` infers it from all lines.
    """
    line = line.rstrip()
    at = _body_at(line)
    if at < 0 or not line.startswith(_DECODE, at):
        return None
    record = _decode_line(line)
    if record is None or record.accept_length is None:
        return None
    length, rate = record.accept_length, record.printed_rate
    inferred, number = infer([] if rate is None else [(length, rate)], num_draft_tokens)
    record.definition = definition or (UNKNOWN_DEFINITION if rate is None else inferred)
    record.recomputed_rate = recomputed(length, rate, record.definition, number)
    return record


def tracker() -> PhaseTracker:
    """Follows phases and knows that a rank's second "Load weight begin" is the drafter's."""
    loads: dict[str, int] = {}

    def refine(name: str, line: str) -> str:
        if name == "starting":
            loads.clear()
        if name != "loading weights":
            return name
        prefix = _PREFIX.match(line)
        if prefix:
            loads[prefix["rank"]] = loads.get(prefix["rank"], 0) + 1
        return "loading drafter" if max(loads.values(), default=0) > 1 else name

    return PhaseTracker(phase_of, first="starting", refine=refine)


@without_collector
def read_log(lines: Iterable[str], num_draft_tokens: int | None = None) -> LogReading:
    """Read a whole log.

    num_draft_tokens (the flag's value, drafts plus one) is read from the server_args line when not given. A
    decode line is marked idle when it is the first after the server had nothing to run: its throughput then
    spans the pause. Records without an accept rate (very old releases) keep printed_rate None.
    """
    reading = LogReading(ENGINE)
    phases = tracker()
    errors = Errors(ENGINE, lambda: phases.current)
    records, idle, served, running_max = reading.acceptance, True, False, -1
    usual, number = _USUAL.match, 0
    for number, raw in enumerate(lines, 1):  # noqa: B007 - the count is wanted after the loop
        line = raw.rstrip()
        if (found := usual(line)) is not None:  # nearly all of a busy server's log: no more work than needed
            running, length, rate, throughput, queued = found.groups()
            running = int(running)
            if running > running_max:
                running_max = running
            if length is not None:
                records.append(
                    AcceptanceRecord(
                        line,
                        float(length),
                        float(rate),
                        UNKNOWN_DEFINITION,
                        None,
                        None,
                        None,
                        None,
                        running,
                        int(queued),
                        float(throughput),
                        idle,
                    )
                )
            idle, served = False, True
            continue
        for line in pieces(raw) if "\r" in line else (line,):  # noqa: B020
            at = _body_at(line)
            if at > 0:
                if line.startswith(_DECODE, at):
                    record = _decode_line(line)
                    if record is None:
                        reading.unknown(line)
                        continue
                    if record.running > running_max:
                        running_max = record.running
                    if record.accept_length is not None:
                        record.idle = idle
                        records.append(record)
                    idle, served = False, True
                    continue
                if line.startswith("Prefill batch", at):
                    idle = idle or "#running-req: 0," in line
                    continue
                if line.startswith("INFO:     ", at) and '" 200' in line:
                    served = served or (phases.ready and '"POST /' in line)
                    continue
            elif tail := after_bar(line):
                phases.feed(line)
                line, at = tail, _body_at(tail)
            prefix = _PREFIX.match(line) if at > 0 else None
            phase = phases.feed(line, prefix["at"] if prefix else None)
            if phase and phase.name == "restarted":
                errors.restart()
                idle, served = True, False
            if num_draft_tokens is None and (found := _DRAFT_TOKENS.search(line)) and prefix:
                num_draft_tokens = int(found[1])
            ours = False
            if errors.busy or _TROUBLE.search(line):
                ours = _trouble(errors, line, prefix, phases.ready)
            if not (prefix or ours or _FOREIGN.match(line)):
                reading.unknown(line)
    reading.lines = number
    reading.running_max = running_max if running_max >= 0 else None
    # Printed to two decimals, so the distinct pairs are few.
    told = list(map(attrgetter("accept_length", "printed_rate"), records))
    pairs = set(told)
    rated = [pair for pair in pairs if pair[1] is not None]
    definition, num_draft_tokens = infer(rated, num_draft_tokens)
    if not rated:
        definition = UNKNOWN_DEFINITION
    rates = {(length, rate): recomputed(length, rate, definition, num_draft_tokens) for length, rate in pairs}
    for record, pair in zip(records, told, strict=True):
        record.definition = definition
        record.recomputed_rate = rates[pair]
    reading.generation = {
        BONUS_COUNTED: "accept rate up to 0.5.10.post1",
        LENGTH_LESS_ONE: "accept rate from 0.5.11 on",
    }.get(definition, "no accept rate" if records and not rated else None)
    return errors.conclude(reading, phases, served)


def _trouble(errors: Errors, line: str, prefix: re.Match | None, ready: bool) -> bool:
    """One line that may speak of an error; True if it did."""
    if _STOP.search(line):
        errors.stopping = True
    who = prefix["rank"].strip() if prefix else ""
    body = line[prefix.end() :] if prefix else line
    # A rank's traceback begins behind its prefix and goes on without one.
    ours = errors.feed(body, "", who) if not prefix or body.endswith("(most recent call last):") else False
    if _FATAL.search(body):
        errors.mark_fatal(ready)
        if _SAID.match(body):
            errors.add(body, who, None if "-9" in body or "watchdog" in body else WRAPPER)
    elif body.startswith("Exit code: -9"):
        errors.add(body, who)
    return ours or bool(_TROUBLE.search(line))


def counts_from_log(log: Path, start: int, counts: Counters, requests: int, output_tokens: int, k: int) -> Counters:
    """Counts of the cell whose lines begin at byte `start`, estimated from its decode lines (sglang_counts.py)."""
    records = [r for line in piece(log, start) if (r := acceptance_of(line, k + 1)) is not None]
    return estimated(records, counts, requests, output_tokens, k)


def first_error(lines: Iterable[str]) -> tuple[str, str] | None:
    """(cause sentence, kind) of the first real exception of any rank, or None."""
    reading = read_log(lines)
    return (reading.cause, reading.cause_kind) if reading.cause else None
