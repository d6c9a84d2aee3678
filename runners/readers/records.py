"""What the readers return: counters, load phases, acceptance records, the reading of a whole log.

Raw counts are kept as the source has them. Rates are derived from them when they are needed (accept length =
1 + accepted/steps, draft acceptance = accepted/drafted, the bonus token never counted).
"""

import functools
import gc
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from runners.readers.accept_rates import ACCEPTED_OVER_DRAFTED
from runners.readers.error_kinds import OTHER

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Phases = list[tuple[str, re.Pattern[str]]]  # (name, what a line that begins it contains)

NOT_TOLD = "not in this text"  # an outcome that an excerpt does not show


@dataclass
class Counters:
    """An engine's counts at one moment (since its start) or, from `since`, over an interval.

    steps, drafted, accepted: verification steps, drafted and accepted tokens, summed over requests; None where the
    source does not tell. With an n-gram drafter engines count only steps that had a draft: `steps` is then less than
    the real number of decode steps, and 1 + accepted/steps overstates tokens per step.
    accepted_per_position: accepted tokens at draft position 0, 1, ... (survival, not conditional).
    requests: answers that began, each with a first token that no decode step made; None where it is not told.
    running, queued: requests at that moment (gauges, never subtracted). gauges: other momentary values.
    """

    steps: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    accepted_per_position: list[int] | None = None
    output_tokens: int | None = None
    requests: int | None = None
    running: float | None = None
    queued: float | None = None
    source: str = ""
    gauges: dict[str, float] = field(default_factory=dict)

    def since(self, before: "Counters") -> "Counters":
        """Counts of the interval from `before` to this moment; gauges keep the later value.

        A counter absent before counts as 0 (engines show some only once used). Raises ValueError when one went
        backwards or vanished: the engine was restarted in between, so no difference means anything.
        """

        def difference(name: str) -> int | None:
            later, earlier = getattr(self, name), getattr(before, name)
            self._must_not_fall(name, later, earlier)
            return None if later is None else later - (earlier or 0)

        counted = ("steps", "drafted", "accepted", "output_tokens", "requests")
        steps, drafted, accepted, output_tokens, requests = map(difference, counted)
        later, earlier = self.accepted_per_position or [], before.accepted_per_position or []
        positions = []
        for i in range(max(len(later), len(earlier))):
            now, then = (counts[i] if i < len(counts) else None for counts in (later, earlier))
            self._must_not_fall(f"accepted_per_position[{i}]", now, then)
            positions.append((now or 0) - (then or 0))
        return Counters(
            steps=steps,
            drafted=drafted,
            accepted=accepted,
            output_tokens=output_tokens,
            requests=requests,
            accepted_per_position=None if self.accepted_per_position is None else positions[: len(later)],
            running=self.running,
            queued=self.queued,
            source=self.source,
            gauges=dict(self.gauges),
        )

    def _must_not_fall(self, name: str, later: int | None, earlier: int | None) -> None:
        if (later or 0) < (earlier or 0):
            now = "absent" if later is None else later
            raise ValueError(
                f"counter {name} went backwards ({earlier} before, {now} now, from {self.source or 'unknown source'}): "
                "the engine restarted during the interval, so its counts cannot be subtracted."
            )


@dataclass
class Phase:
    """A load phase and the line that announced it.

    at: the line's own time stamp or else its collector's, as text. seconds: how long it took, where the engine says so.
    """

    name: str
    line: str
    at: str | None = None
    seconds: float | None = None


@dataclass(slots=True)
class AcceptanceRecord:
    """One acceptance line of a log.

    printed_rate: the engine's own figure as a fraction, with the meaning `definition` (accept_rates.py).
    recomputed_rate: always accepted/drafted, (accept length - 1)/K for a chain; None where it cannot be derived.
    per_position: survival rates. throughput: output tokens/s as printed.
    idle: the throughput includes time in which nothing ran or, for vLLM, nothing was drafted at all; accept_length and
    the rates of an SGLang line stay valid.

    A log has a million of these. The readers' inner loops therefore make one without `__init__` (`blank_record`) and
    set every field by name: arguments by name would take twice as long.
    """

    line: str
    accept_length: float | None = None
    printed_rate: float | None = None
    definition: str = ACCEPTED_OVER_DRAFTED
    accepted: int | None = None
    drafted: int | None = None
    per_position: list[float] | None = None
    recomputed_rate: float | None = None
    running: int | None = None
    queued: int | None = None
    throughput: float | None = None
    idle: bool = False


# A record without any field: whoever calls it sets all twelve.
blank_record = functools.partial(AcceptanceRecord.__new__, AcceptanceRecord)


@dataclass
class LogReading:
    """What one log, or an excerpt of one, tells.

    engine_certainty: how sure it is whose text this is (recognise.py). excerpt: the start of the engine is not in it.
    outcome: the last state that the log shows: starting, ready, served, stopped (in an orderly way) or dead; NOT_TOLD
    where an excerpt shows none. A process killed without a last line still reads "served", so compare it with the exit
    status. no_progress_since, waits_for: a suspected stall, at which time it began and what the engine says it waits
    for. cause: may be set for a living engine too (a refused request, a drafter it went on without). unknown_lines:
    lines in no form of this engine that is known here. plain_throughputs: output tokens/s as printed for intervals
    without speculation.
    """

    engine: str
    engine_certainty: str | None = None
    generation: str | None = None
    excerpt: bool = False
    phases: list[Phase] = field(default_factory=list)
    acceptance: list[AcceptanceRecord] = field(default_factory=list)
    running_max: int | None = None
    outcome: str = "starting"
    no_progress_since: str | None = None
    waits_for: str | None = None
    cause: str | None = None
    cause_kind: str | None = None
    advice: str | None = None
    lines: int = 0
    unknown_lines: int = 0
    unknown_examples: list[str] = field(default_factory=list)
    plain_throughputs: list[float] = field(default_factory=list)
    totals: Counters | None = None
    without_speculation: str | None = None

    def unknown(self, line: str) -> None:
        """Count a line, or a piece of one between carriage returns, that no known form matches."""
        self.unknown_lines += 1
        if len(self.unknown_examples) < 5:
            self.unknown_examples.append(line[:300])

    def first_error(self) -> tuple[str, str] | None:
        """(cause sentence, kind) of the first real error, or None."""
        return (self.cause, self.cause_kind or OTHER) if self.cause else None


def without_collector(read: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorator of a reader of whole logs: switches Python's garbage collector off meanwhile.

    Records hold no cycles, and walking a million of them again and again costs a fifth of the time.
    """

    @functools.wraps(read)
    def reading(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        was = gc.isenabled()
        gc.disable()
        try:
            return read(*args, **options)
        finally:
            if was:
                gc.enable()

    return reading


_BAR_END = re.compile(r"(?:it/s|s/it)\](?: |\x1b\[A)*(?=[\[(A-Z])")


def pieces(raw: str) -> tuple[str, ...] | list[str]:
    """A line without its line end, cut at carriage returns (progress bars that redraw themselves)."""
    line = raw.rstrip()
    return [p for p in line.split("\r") if p] or [""] if "\r" in line else (line,)


def after_bar(line: str) -> str | None:
    """The log line that another process wrote right behind an unfinished progress bar, or None."""
    found = _BAR_END.search(line)
    return line[found.end() :] if found else None


def match_phase(phases: Phases) -> Callable[[str], str | None]:
    """A function line -> name of the phase that it begins, or None. One scan for all patterns; the leftmost wins."""
    pattern = re.compile("|".join(f"(?P<p{i}>{p.pattern})" for i, (_, p) in enumerate(phases)))
    names = {f"p{i}": name for i, (name, _) in enumerate(phases)}

    def phase_of(line: str) -> str | None:
        found = pattern.search(line)
        return names[found.lastgroup] if found and found.lastgroup else None

    return phase_of


class PhaseTracker:
    """Follows load phases over a log: each is entered once, and an earlier one is never entered again.

    `refine(name, line)` lets an engine distinguish two phases that are announced by the same words (SGLang loads target
    and drafter with the same line). After "ready", the phase `first` means that the engine was started again into the
    same log: a phase "restarted" is recorded, and the phases begin anew.
    """

    def __init__(
        self, phase_of: Callable[[str], str | None], first: str, refine: Callable[[str, str], str] | None = None
    ):
        self._phase_of, self._first, self._refine = phase_of, first, refine
        self.phases: list[Phase] = []
        self._seen: set[str] = set()
        self.ready = False

    def feed(self, line: str, at: str | None = None) -> Phase | None:
        """The phase that begins with this line, or None."""
        name = self._phase_of(line)
        if name is None:
            return None
        if self.ready:
            if name != self._first:
                return None
            self._seen.clear()
            self.ready = False
            name = "restarted"
        elif self._refine is not None:
            name = self._refine(name, line)
        if name in self._seen:
            return None
        self._seen.add(name)
        self.ready = name == "ready"
        phase = Phase(name, line, at)
        self.phases.append(phase)
        return phase

    @property
    def current(self) -> str | None:
        """The phase entered last."""
        return self.phases[-1].name if self.phases else None

    @property
    def began(self) -> bool:
        """Whether the engine's start is in the log."""
        return any(phase.name == self._first for phase in self.phases)

    def lasted(self, name: str, seconds: float) -> None:
        """The engine says how long a phase took; of several ranks the slowest counts."""
        for phase in reversed(self.phases):
            if phase.name == name:
                phase.seconds = max(seconds, phase.seconds or 0.0)
                return
            if phase.name == "restarted":
                return
