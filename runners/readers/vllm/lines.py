"""The lines that a serving vLLM writes over and over: its prefix, the acceptance line, the Engine line.

Releases before 0.8 print "INFO 03-11 06:16:52 metrics.py:100] " without the bracket before the file; those before 0.32
print the main process without "(APIServer pid=N)"; up to about 0.10 the acceptance line begins with the rate. The V0
engine wrote "Speculative metrics", with counts since its start (v0.7: engine/metrics.py, spec_decode/metrics.py).
"""

import re
from collections.abc import Callable
from typing import cast

from runners.readers.accept_rates import ACCEPTED_OVER_DRAFTED, JUDGED_ALONE
from runners.readers.records import AcceptanceRecord, blank_record

# "(EngineCore pid=7) ERROR 11-29 16:24:59 [core.py:1510] text"; the process part only where it is decorated, and once
# for each process that passed the line on.
_PREFIX = re.compile(
    r"(?P<process>(?:\((?P<who>[A-Za-z][\w .=-]*?) pid=\d+(?:, ip=[\w.:]+)?\) ?)*)"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<at>(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d)\S* "
    r"\[?(?:[^\]\s]*/)?(?P<file>[^\]:/\s]+):\d+\] ?)?"
)
# Every part is optional: it matches any line, if only with nothing.
prefix_of = cast("Callable[[str], re.Match[str]]", _PREFIX.match)
# Read only behind the name of the file that writes them: an echoed prompt may hold the same words.
SPEC_FILE, ENGINE_FILES = "metrics.py", ("loggers.py", "metrics.py")
SPEC, SPEC_V0 = "SpecDecoding metrics: ", "Speculative metrics: "
ENGINE_LINE = re.compile(r"(?:(?:Engine (\d+)|\d+ Engines Aggregated): )?Avg prompt throughput: ")
# Both lines in today's form, in one scan; any other form goes through `acceptance_in` and `engine_figures`.
USUAL = re.compile(
    r"(?:\([A-Za-z][\w .=-]*? pid=\d++\) ?)?INFO \d\d-\d\d \d\d:\d\d:\d\d \["
    r"(?:metrics\.py:\d++\] SpecDecoding metrics: Mean acceptance length: (\d++\.\d++), Accepted throughput: [\d.]++ "
    r"tokens/s, Drafted throughput: [\d.]++ tokens/s, Accepted: (\d++) tokens, Drafted: (\d++) tokens, "
    r"Per-position acceptance rate: (\d++\.\d++(?:, \d++\.\d++)*+), Avg Draft acceptance rate: (\d++\.\d++)%$"
    r"|loggers\.py:\d++\] Engine (\d++): Avg prompt throughput: [\d.]++ tokens/s, Avg generation throughput: "
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
_V0 = re.compile(
    rf"Draft acceptance rate: {_NUMBER}, .*Number of speculative tokens: (\d+), .*"
    r"Number of draft tokens(?: tokens)?: (\d+), Number of emitted tokens(?: tokens)?: (\d+)"
)
_GENERATION = re.compile(r"Avg generation throughput: (\d+\.\d+)")
_RUNNING = re.compile(r"Running: (\d+) reqs")
_WAITING = re.compile(r"(?:Waiting|Pending): (\d+) reqs")

EngineLine = tuple[int | None, int | None, float | None]  # running and waiting requests, output tokens/s
NOTHING_YET: EngineLine = (None, None, None)


def _float(text: str | None) -> float | None:
    return None if text is None or text == "nan" else float(text)


def record_of(
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
    prefix = prefix_of(line)
    return acceptance_in(line, line[prefix.end() :]) if prefix["file"] == SPEC_FILE else None


def acceptance_in(line: str, body: str, cut: bool = False) -> AcceptanceRecord | None:
    """The same from a line and its text behind the prefix, whatever file wrote it.

    cut: the line was cut out of its log, so that its counts may be missing.
    """
    if not body.startswith(SPEC):
        return None
    length, accepted, drafted, positions, rate = (found[1] if (found := f.search(body)) else None for f in _FIELDS)
    if accepted is not None and drafted is not None:
        return record_of(line, length, accepted, drafted, positions, rate)
    if not cut or (_float(length) is None and _float(rate) is None):
        return None
    percent = _float(rate)
    return AcceptanceRecord(
        line=line, accept_length=_float(length), printed_rate=None if percent is None else percent / 100
    )


class SinceStart:
    """The V0 engine's "Speculative metrics" lines, whose counts are since the start: each less the one before it."""

    def __init__(self) -> None:
        self._drafted = self._emitted = 0

    def acceptance_in(self, line: str, body: str) -> AcceptanceRecord | None:
        """The record of the interval that this line ends, or None.

        The printed rate judges each drafted token alone, those behind a rejected one too. A step drafts k tokens and
        emits one more than it accepts: accepted = emitted - drafted / k.
        """
        found = _V0.search(body)
        if not found or not int(found[2]):
            return None
        rate, k, drafted, emitted = _float(found[1]), int(found[2]), int(found[3]), int(found[4])
        if drafted < self._drafted or emitted < self._emitted:  # the engine was started again
            self._drafted = self._emitted = 0
        d, steps = drafted - self._drafted, (drafted - self._drafted) // k
        a = max(0, emitted - self._emitted - steps)
        self._drafted, self._emitted = drafted, emitted
        return AcceptanceRecord(
            line=line,
            accept_length=1 + a / steps if steps else None,
            printed_rate=rate,
            definition=JUDGED_ALONE,
            accepted=a,
            drafted=d,
            recomputed_rate=a / d if d else None,
            idle=not d,
        )


def engine_figures(body: str) -> EngineLine:
    """The figures of an Engine line; None for each that is not there."""
    running, waiting, throughput = _RUNNING.search(body), _WAITING.search(body), _GENERATION.search(body)
    return (
        int(running[1]) if running else None,
        int(waiting[1]) if waiting else None,
        float(throughput[1]) if throughput else None,
    )


def at_of(line: str) -> str | None:
    """The time of a line with a log prefix."""
    return prefix_of(line)["at"]


class Load:
    """Requests that run and output tokens/s, summed over the engines of a data-parallel group, from their Engine lines.

    most: the largest number of running requests; None before the first line. plain: tokens/s of the intervals whose
    Engine line has no acceptance line behind it. before: tokens/s of the last Engine line while none has come; the
    reader sets it to 0 at an acceptance line.
    """

    def __init__(self) -> None:
        self.most: int | None = None
        self.plain: list[float] = []
        self.before = 0.0
        self._running: dict[str, int] = {}
        self._speeds: dict[str, float] = {}

    def add(self, engine: str, running: int, speed: float) -> int:
        """One Engine line; returns the requests that run on all engines now."""
        if self.before:
            self.plain.append(self.before)
        self._running[engine], self._speeds[engine] = running, speed
        if len(self._running) > 1:
            running, speed = sum(self._running.values()), sum(self._speeds.values())
        self.before = speed
        self.most = max(running, self.most or 0)
        return running

    def restart(self) -> None:
        """The engine was started again: nothing runs."""
        self._running, self._speeds, self.before = {}, {}, 0.0

    @property
    def idle(self) -> bool | None:
        """Whether nothing runs by the last Engine lines; None without one."""
        return not any(self._running.values()) if self._running else None
