"""SGLang's log (its metrics, /server_info and meta_info are in http.py, its decode line is in decode_lines.py).

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
from pathlib import Path
from typing import cast

from runners.readers.accept_rates import BONUS_COUNTED, LENGTH_LESS_ONE
from runners.readers.causes import REFUSED, STANDS_ALONE, WRAPPER, Errors
from runners.readers.log_lines import clock_of
from runners.readers.records import (
    Counters,
    LogReading,
    Phases,
    PhaseTracker,
    after_bar,
    match_phase,
    pieces,
    without_collector,
)
from runners.readers.sglang.counts import estimated, piece
from runners.readers.sglang.decode_lines import (
    BEGIN,
    USUAL,
    BareFields,
    Load,
    MatchUsual,
    Records,
    acceptance_of,
    bare_fields_of,
    body_at,
    dp_rank_of,
    fields_of,
)

ENGINE = "sglang"

_GRAPHS = r"(?:cuda|CUDA|cpu|npu) graph"
PHASES: Phases = [
    ("starting", re.compile(r"\] server_args=ServerArgs\(")),
    ("joining ranks", re.compile(r"\] Init torch distributed begin")),
    (
        "loading weights",
        re.compile(r"\] Load weight begin\.|^Loading \w+ checkpoint shards:|^Multi-thread loading \w*"),
    ),
    # It begins with the words of "loading weights" again, which only `tracker` can distinguish; this is its end.
    ("loading drafter", re.compile(r"\] Load weight end\. .*type=\w*(?:Eagle|NextN|MTP|DFlash)")),
    ("allocating memory", re.compile(r"\] (?:KV Cache is allocated|Memory pool end)")),
    (
        "capturing drafter graphs",
        re.compile(rf"\] Capture (?:draft\b|UNO tree draft|Frozen-KV MTP draft)[\w ]*? {_GRAPHS} begin"),
    ),
    ("capturing graphs", re.compile(rf"\] Capture (?:piecewise |target \w+ )?{_GRAPHS} (?:begin|bs|end)")),
    ("warming up", re.compile(r"INFO: +Application startup complete|Start of (?:pd )?disaggregation warmup")),
    ("ready", re.compile(r"\] The server is fired up and ready to roll!")),
]
phase_of = match_phase(PHASES)

# "[2026-01-31 12:00:00 TP0] " or, long ago, "[12:00:00 TP0] "; the rank part is absent in one-process groups.
_PREFIX = re.compile(r"\[(?P<at>(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(?:\.\d+)?)(?P<rank>(?: [A-Z_]+\d+)*)\] ")
_TROUBLE = re.compile(
    r"Traceback \(most|hit an exception|[Ss]igquit|SIGQUIT|SIGTERM|Gracefully exiting|watchdog timeout"
    r"|scheduler is dead|died during|crashed with exit code|Exit code: |Initialization failed|^Killed$"
    rf"|{REFUSED}|{STANDS_ALONE}"
)
_FATAL = re.compile(
    r"hit an exception|[Ss]igquit|SIGQUIT|scheduler is dead|died during|crashed with exit code"
    r"|Initialization failed|^Killed$|watchdog timeout.*soft=False"
)
# Of the fatal lines those that a process prints about another one; the rest are that process's own error.
_ABOUT_ANOTHER = re.compile(
    r"Received sigquit|SIGQUIT received|Subprocess \w+|Rank \d+ scheduler|Exit code: |.*watchdog timeout"
    r"|Killed$"
)
_STOP = re.compile(r"\] (?:SIGTERM received|Gracefully exiting)")
_DRAFT_TOKENS = re.compile(r"speculative_num_draft_tokens=(\d+)")
_FOREIGN = re.compile(r"\[?[WIE]\d{4} |.*Warning: |  |.*\d+%\|| *$|.*% Completed \||.*(?:it/s|s/it)\]|INFO: ")


def tracker() -> PhaseTracker:
    """Follows the load phases of one log, line by line.

    Target and drafter are loaded with the same line. It is the drafter's when its rank loads a second time, or when its
    replica (data-parallel rank) already has memory or graphs for the target: an excerpt may begin after the first load.
    """
    loads: dict[str, int] = {}  # rank -> how many models it began to load
    loaded: set[str | None] = set()  # replicas whose target is loaded

    def refine(name: str, line: str) -> str:
        if name == "starting":
            loads.clear()
            loaded.clear()
        if name in ("allocating memory", "capturing graphs"):
            loaded.add(dp_rank_of(line))
        if name != "loading weights":
            return name
        prefix = _PREFIX.match(line)
        if prefix:
            loads[prefix["rank"]] = loads.get(prefix["rank"], 0) + 1
            if dp_rank_of(line) in loaded:
                return "loading drafter"
        return "loading drafter" if max(loads.values(), default=0) > 1 else name

    return PhaseTracker(phase_of, first="starting", refine=refine)


@without_collector
def read_log(lines: Iterable[str], num_draft_tokens: int | None = None) -> LogReading:
    """Read a whole log.

    num_draft_tokens (the flag's value, drafts plus one) is read from the server_args line when not given. A decode line
    is marked idle when it is the first of its data-parallel rank after that had nothing to run: its throughput then
    includes the pause, while its accept length holds. running_max is a sum over these ranks (decode_lines.Load).
    Records without an accept rate (very old releases) keep printed_rate None. Decode lines without SGLang's prefix are
    read only where no line has one.
    """
    reading = LogReading(ENGINE)
    phases = tracker()
    errors, clock = Errors(ENGINE, lambda: phases.current), clock_of(lines)
    idle, served, prefixed = True, False, False
    decoded, load = Records(), Load()
    busy: set[str] = set()  # data-parallel ranks that decoded since they last had nothing to run: not `idle`, by rank
    at_work: set[str] = set()  # running requests, as printed, where there is one rank
    bare: list[tuple[str, BareFields]] = []
    usual, number = cast(MatchUsual, USUAL.match), 0
    for number, raw in enumerate(lines, 1):  # noqa: B007 - the number of lines is needed after the loop
        line = raw.rstrip()
        if (fields := usual(line)) is not None:  # nearly all of a busy server's log: no more work than needed
            found = fields.groups()
            rank = found[0]
            if rank is None:
                at_work.add(found[1])
                decoded.add(line, found, idle)
                idle = False
            else:
                load.add(rank, int(found[1]))
                decoded.add(line, found, rank not in busy)
                busy.add(rank)
            served = True
            continue
        for line in pieces(raw) if "\r" in line else (line,):  # noqa: B020
            at = body_at(line)
            if at > 0:
                prefixed = True
                if line.startswith(BEGIN, at):
                    other = fields_of(line)
                    if other is None:
                        reading.unknown(line)
                        continue
                    rank = other[0]
                    if rank is None:
                        at_work.add(other[1])
                        decoded.add(line, other, idle)
                        idle = False
                    else:
                        load.add(rank, int(other[1]))
                        decoded.add(line, other, rank not in busy)
                        busy.add(rank)
                    served = True
                    continue
                if line.startswith("Prefill batch", at):
                    if "#running-req: 0," in line:
                        rank = dp_rank_of(line)
                        idle = idle or rank is None
                        busy.discard(rank or "")
                    continue
                if line.startswith("INFO:     ", at) and '" 200' in line:
                    served = served or (phases.ready and '"POST /' in line)
                    continue
            elif tail := after_bar(line):
                phases.feed(line)
                line, at = tail, body_at(tail)
            elif cut_out := bare_fields_of(line):
                bare.append((line, cut_out))
                continue
            prefix = _PREFIX.match(line) if at > 0 else None
            phase = phases.feed(line, prefix["at"] if prefix else clock())
            if phase and phase.name == "restarted":
                errors.restart()
                busy.clear()
                idle = True
                served = False
            if num_draft_tokens is None and (flag := _DRAFT_TOKENS.search(line)) and prefix:
                num_draft_tokens = int(flag[1])
            of_error = False
            if errors.busy or _TROUBLE.search(line):
                of_error = _feed_error(errors, line, prefix, phases.ready)
            if not (prefix or of_error or _FOREIGN.match(line)):
                reading.unknown(line)
    reading.lines = number
    if prefixed or served:
        for line, _ in bare:
            reading.unknown(line)
    else:
        _add_bare(bare, decoded, at_work)
        served = bool(bare)
    _conclude_decoding(reading, decoded, num_draft_tokens)
    most = [int(n) for n in at_work] + ([] if load.most is None else [load.most])
    reading.running_max = max(most, default=None)
    return errors.conclude(reading, phases, served)


def _add_bare(bare: list[tuple[str, BareFields]], decoded: Records, at_work: set[str]) -> None:
    """Decode lines without their time, as an excerpt may have them; before the first one the server may have paused."""
    for i, (line, fields) in enumerate(bare):
        if fields[0] is not None:
            at_work.add(fields[0])
        decoded.add_bare(line, fields, idle=not i)


def _conclude_decoding(reading: LogReading, decoded: Records, num_draft_tokens: int | None) -> None:
    """Write the records, and what their accept rate means, into `reading`."""
    reading.acceptance, definition = decoded.records, decoded.settle(num_draft_tokens)
    reading.plain_throughputs = decoded.plain_throughputs
    reading.generation = {
        BONUS_COUNTED: "accept rate up to 0.5.10.post1",
        LENGTH_LESS_ONE: "accept rate from 0.5.11 on",
    }.get(definition, "no accept rate" if decoded.records and not decoded.rated else None)


def _feed_error(errors: Errors, line: str, prefix: re.Match[str] | None, ready: bool) -> bool:
    """One line that may be of an error; True if it was."""
    if _STOP.search(line):
        errors.stopping = True
    who = prefix["rank"].strip() if prefix else ""
    body = line[prefix.end() :] if prefix else line
    # A rank's traceback begins behind its prefix and continues without one.
    in_traceback = errors.feed(body, "", who) if not prefix or body.endswith("(most recent call last):") else False
    if _FATAL.search(body):
        errors.mark_fatal(ready)
        if _ABOUT_ANOTHER.match(body):
            errors.add(body, who, None if "-9" in body or "watchdog" in body else WRAPPER)
    elif body.startswith("Exit code: -9"):
        errors.add(body, who)
    return in_traceback or bool(_TROUBLE.search(line))


def counts_from_log(log: Path, start: int, counts: Counters, requests: int, output_tokens: int, k: int) -> Counters:
    """Counts of the cell whose lines begin at byte `start`, estimated from its decode lines (counts.py)."""
    records = [r for line in piece(log, start) if (r := acceptance_of(line, k + 1)) is not None]
    return estimated(records, counts, requests, output_tokens, k)


def first_error(lines: Iterable[str]) -> tuple[str, str] | None:
    """(cause sentence, kind) of the first real exception of any rank, or None."""
    return read_log(lines).first_error()
