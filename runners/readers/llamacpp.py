"""llama.cpp's log (llama-server, or its native server in the `xllamacpp` wheel), metrics and timings.

Forms seen in runs of xllamacpp 2026.10.11549 and read from its strings (tools/server/server-context.cpp,
server-task.cpp, common/speculative.cpp); older acceptance lines from ggml-org/llama.cpp pull requests 12603
and 24536. Three generations of the acceptance line:

    draft acceptance rate = r (a accepted / g generated)               a line of its own, without prefix ...
    | draft acceptance = r (a accepted / g generated), mean acceptance length = l, acceptance rate per
    position = (..) ... | draft acceptance = r (a accepted / g generated), mean len = l     then, when
    verbose: ... | acc per pos = (..)

Newer lines begin with the time since start and a level: "0.04.203.423 I slot print_timing: id 1 | task 0 | ".
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, cast

from runners.readers.accept_rates import ACCEPTED_OVER_DRAFTED
from runners.readers.causes import REQUEST, ROOT, WRAPPER, Errors
from runners.readers.llamacpp_counts import Totals
from runners.readers.log_lines import clock_of
from runners.readers.prometheus import accepted_tokens, count, samples, total
from runners.readers.records import (
    AcceptanceRecord,
    Counters,
    LogReading,
    Phases,
    PhaseTracker,
    blank_record,
    match_phase,
    pieces,
    without_collector,
)

ENGINE = "llamacpp"

PHASES: Phases = [
    ("importing", re.compile(r"^importing xllamacpp|build_info: |^build: \d")),
    ("loading weights", re.compile(r"^loading model |load_model: loading model '|main: loading model")),
    ("loading drafter", re.compile(r"loading draft model '|creating MTP draft context")),
    ("making contexts", re.compile(r"load_model: initializing, n_slots|init: initializing slots")),
    # Not "HTTP server is listening", which older servers print before they load the model.
    (
        "ready",
        re.compile(
            r"(?:init|main|llama_server): (?:model loaded|(?:server is )?listening on http)|^server is listening on "
        ),
    ),
]
phase_of = match_phase(PHASES)

# A container's own time stamp, a child's number in router mode, time since start and level. All are optional: it
# matches any line, if only with nothing.
_PREFIX = re.compile(
    r"(?:\d{4}-\d\d-\d\d[ T][\d:.,]+Z? (?:\| )?)?(?:\[(?P<child>\d+)\] )?"
    r"(?:(?P<at>\d+\.\d\d\.\d{3}\.\d{3}) (?P<level>[DIWE]) "
    r"|(?P<short>[DIWE]) (?=(?:srv|slot|cmn|spec|que|load|llama_\w+) ))?"
)
_prefix_of = cast("Callable[[str], re.Match[str]]", _PREFIX.match)
_SLOT = re.compile(r"slot +(?P<what>\w+): id +(?P<id>\d+) \| task (?P<task>-?\d+) \| *")
_RATE = re.compile(r"draft acceptance(?: rate)? = (\d+\.\d+|nan) \( *(\d+) accepted / *(\d+) generated\)")
# The newest form, and the oldest behind a slot, in one scan; any other form goes through `acceptance_of`.
USUAL = re.compile(
    r"(?:(?:\d++\.\d\d\.\d{3}\.\d{3} )?I )?slot print_timing: id +\d++ \| task -?\d++ \| *+"
    r"draft acceptance(?: rate)? = (\d++\.\d++) \( *+(\d++) accepted / *+(\d++) generated\)"
    r"(?:, mean len = ++(\d++\.\d++))?+$"
)
_LENGTH = re.compile(r"\bmean (?:acceptance length|len) = +(\d+\.\d+)")
_POSITIONS = re.compile(r"(?:acceptance rate per position|acc per pos) = \((\d+\.\d+(?:, \d+\.\d+)*)\)")
_TIMING = re.compile(r" *(prompt eval|eval|total) time = ")
_OWN = re.compile(
    r"(?:server|srv|slot|cmn|spec|que|res|main|llama|ggml|load|print_info|common|statistics|clip|mtmd|init)\b"
    r"|~?\w+: |\.{3,}| {1,3}- "
)
# Printed at error level by healthy servers: memory is first estimated with the drafter alone.
_HARMLESS = re.compile(r"this warning is normal|while trying to fit params|common_fit_params|failed to fit params")
_ERROR = re.compile(
    r"error loading model|failed to (?:load|initialize|create|allocate|process|decode)|unable to allocate"
    r"|couldn't bind|exiting due to|terminate called|GGML_ASSERT|CUDA error|std::bad_alloc|^Killed$"
    r"|^(?:[\w.-]+: )?error: |out of memory|Compute error|fatal error"
)
# Only a warning there, but the server then goes on without speculation.
_VOCABULARY = re.compile(r"draft model (?:vocab|bos|eos)\b.* must (?:closely )?match target")
_WRAPPER = re.compile(r"exiting due to|failed to load model(?:$|, ?'| ')|llama_model_load_from_file|terminate called")
# What a request's error makes the server print before and with `send_error`.
_OF_REQUEST = re.compile(r"(?:init|decode|llama_decode|process_ubatch|spec +[\w.]+|srv +(?:decode|update_slots)): ")
# It goes on, but plainly; the first of these is printed by servers that were asked for no speculation, too.
_WITHOUT = re.compile(
    r"speculative decoding not supported by this context|no implementations specified for speculative decoding"
    rf"|failed to initialize speculative decoding context|{_VOCABULARY.pattern}"
)
_FATAL = re.compile(
    r"exiting due to|terminate called|GGML_ASSERT|CUDA error|^Killed$|^(?:[\w.-]+: )?error: "
    r"|Segmentation fault|fatal error"
)
_STOP = re.compile(r"^server stopped by signal|[Rr]eceived (?:second )?interrupt|^Interrupted by user")


def _floats(text: str) -> list[float]:
    return [float(x) for x in text.split(", ")]


def _record(
    line: str, rate: str, accepted: str, drafted: str, length: str | None, positions: str | None = None
) -> AcceptanceRecord:
    """The record of an acceptance line from its fields as printed."""
    a, d = int(accepted), int(drafted)
    record = blank_record()
    record.line = line
    record.accept_length = None if length is None else float(length)
    record.printed_rate = None if rate == "nan" else float(rate)
    record.definition = ACCEPTED_OVER_DRAFTED
    record.accepted, record.drafted = a, d
    record.per_position = None if positions is None else _floats(positions)
    record.recomputed_rate = a / d if d else None
    record.running = record.queued = record.throughput = None  # a line of one request: it does not tell
    record.idle = not d
    return record


def acceptance_of(line: str, after_timings: bool = False) -> AcceptanceRecord | None:
    """The record of a request's acceptance line, or None for any other line.

    The oldest form has no prefix, so an echoed prompt could look the same: it is read only where the caller knows that
    the request's timing lines come right before it (after_timings), as `read_log` does.
    """
    line = line.rstrip()
    begin = _prefix_of(line).end()
    slot = _SLOT.match(line, begin)
    if slot and slot["what"].startswith("print_timing"):
        found = _RATE.match(line, slot.end())
    else:
        found = _RATE.fullmatch(line, begin) if after_timings else None
    if not found:
        return None
    length, positions = (more[1] if (more := form.search(line)) else None for form in (_LENGTH, _POSITIONS))
    return _record(line, found[1], found[2], found[3], length, positions)


def read_counters(metrics_text: str, **_extra: Any) -> Counters:
    """Counters of a /metrics answer; the per-position counter is absent until something was drafted.

    Builds without the spec_decode counters give output tokens and gauges only.
    """
    spec = "llamacpp:spec_decode_num_"
    found = samples(metrics_text, (spec, "llamacpp:tokens_predicted_total", "llamacpp:requests_"))
    accepted, positions = accepted_tokens(found, spec)
    return Counters(
        steps=count(found, spec + "drafts_total"),
        drafted=count(found, spec + "draft_tokens_total"),
        accepted=accepted,
        accepted_per_position=positions,
        output_tokens=count(found, "llamacpp:tokens_predicted_total"),
        running=total(found, "llamacpp:requests_processing"),
        queued=total(found, "llamacpp:requests_deferred"),
        source="llamacpp /metrics",
    )


def tracker() -> PhaseTracker:
    """Follows the load phases of one log, line by line."""
    return PhaseTracker(phase_of, first="importing")


@without_collector
def read_log(lines: Iterable[str], num_draft_tokens: int | None = None) -> LogReading:
    """Read a whole log. num_draft_tokens is not needed here: the lines have the counts.

    running_max is the largest number of slots at work at the same time. A drafter that cannot be used is a cause of a
    server that lives: llama.cpp then serves *without* speculation. An error of one request is no death.
    """
    reading = LogReading(ENGINE)
    phases = tracker()
    errors, clock = Errors(ENGINE, lambda: phases.current), clock_of(lines)
    busy: set[str] = set()
    totals = Totals()
    bare: list[str] = []  # acceptance lines of the oldest form without timing lines before them
    served = timings = slots = False
    last_slot = None
    records, usual, number = reading.acceptance, USUAL.match, 0
    for number, raw in enumerate(lines, 1):  # noqa: B007 - the number of lines is needed after the loop
        line = raw.rstrip()
        for line in pieces(raw) if "\r" in line else (line,):  # noqa: B020
            at = line.find("slot ", 0, 64)
            if at == 2 and line[0] in "DIW":  # a level without a time
                line, at = line[2:], 0
            if at == 0 or at > 0 and line[at - 1] == " " and line[0] in "[0123456789":
                # Cut by hand, since nearly all lines of a busy server are of this kind; `acceptance_of` is strict.
                if line.startswith("print_timing", at + 5):
                    served = timings = slots = True
                    if "draft acceptance" in line:
                        if found := usual(line):
                            records.append(_record(line, *found.groups()))
                        elif record := acceptance_of(line):
                            records.append(record)
                        else:
                            reading.unknown(line)
                            continue
                        last_slot = line[at : line.find("|", line.find("| task") + 1)]
                    elif line[-1] == ")" and (begin := line.find("  eval time")) > 0:  # one space: the prompt's
                        totals.answers.append(line[begin : begin + 60])
                    elif "acc per pos" in line and last_slot and line.startswith(last_slot, at):
                        if found := _POSITIONS.search(line):
                            records[-1].per_position = _floats(found[1])
                        else:
                            reading.unknown(line)
                    continue
                timings = False
                what = line[at + 5 : at + 17].strip()
                if what.startswith("launch_slot"):
                    busy.add(line[at : line.find("|", at)].rpartition("id")[2])
                    reading.running_max = max(len(busy), reading.running_max or 0)
                elif what == "release":
                    busy.discard(line[at : line.find("|", at)].rpartition("id")[2])
                elif line[:at].endswith("E "):
                    errors.add(line[at:], weight=REQUEST)
                continue
            # The oldest acceptance line has no prefix: in a whole log it counts only right behind the timing lines of a
            # request.
            if timings:
                if timing := _TIMING.match(line, _prefix_of(line).end()):
                    if timing[1] == "eval":
                        totals.answers.append(line)
                    continue
                if record := acceptance_of(line, after_timings=True):
                    records.append(record)
                    continue
                timings = False
            prefix = _prefix_of(line)
            level, body = prefix["level"] or prefix["short"], line[prefix.end() :]
            phase = phases.feed(line, prefix["at"] or clock())
            if phase and phase.name == "restarted":
                errors.restart()
                totals.restart()
                served = False
            if totals.feed(body, prefix["child"]):
                continue
            if body.startswith("draft acceptance"):
                bare.append(line)
                continue
            if _WITHOUT.search(body):
                reading.without_speculation = " ".join(body.split())
            errors.stopping = errors.stopping or _STOP.search(body) is not None
            known = errors.feed(body)
            if (
                not known
                and (level == "E" or level is None and _ERROR.search(body) or _VOCABULARY.search(body))
                and not _HARMLESS.search(body)
            ):
                if _FATAL.search(body):
                    errors.mark_fatal(phases.ready)
                errors.add(body, weight=_weight(body, loading=bool(phases.phases) and not phases.ready))
                known = True
            if not (known or level or _OWN.match(body) or phase or not body):
                reading.unknown(line)
    reading.lines = number
    for line in bare:
        record = None if slots or served else acceptance_of(line, after_timings=True)
        if record:
            records.append(record)
        else:
            reading.unknown(line)
    served = served or bool(records)
    # Which of the three forms it was: the oldest has "acceptance rate =".
    if records:
        old = _PREFIX.sub("", records[0].line, count=1).find("acceptance rate = ") >= 0
        reading.generation = "draft acceptance rate" if old else "draft acceptance"
    reading.totals = totals.counters(records, whole=phases.ready)
    if any(r.drafted for r in records) or (reading.totals and reading.totals.drafted):
        reading.without_speculation = None
    return errors.conclude(reading, phases, served)


def _weight(body: str, loading: bool) -> int:
    """The weight of an error line. loading: the server is not ready yet, so there is no request that could fail."""
    of_request = _OF_REQUEST.match(body) and not (loading or _FATAL.search(body) or _WITHOUT.search(body))
    if of_request or "send_error: task id" in body:
        return REQUEST
    return WRAPPER if _WRAPPER.search(body) else ROOT


def first_error(lines: Iterable[str]) -> tuple[str, str] | None:
    """(cause sentence, kind) of the first real error, or None."""
    return read_log(lines).first_error()
