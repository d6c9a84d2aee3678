"""Two snapshots of one server's counters: what happened between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from runners.core.errors import UserError
from runners.readers.counter_figures import Figures, figures
from runners.readers.records import Counters

ROWS, FILES, GIVEN, CLOCK = "the rows' time stamps", "the files' times", "--seconds", "the clock"
# Files that were copied or unpacked lie closer together than anybody scrapes a server.
SHORTEST_SECONDS = 0.5


@dataclass(frozen=True)
class Snapshot:
    """A server's counters at one moment.

    at: seconds since 1970, None where it is not known; time_from: where it comes from. started: when the server's
    process started, where it says so.
    """

    name: str
    counters: Counters
    at: float | None = None
    time_from: str = FILES
    started: float | None = None


@dataclass(frozen=True)
class Interval:
    """What a server did between two snapshots. counters: the differences; gauges are those of `after`.

    seconds: None where the snapshots do not tell; then there are no rates. tokens_per_second: output tokens;
    steps_per_second: steps with a draft, summed over requests. running: requests at the beginning and at the end.
    """

    before: str
    after: str
    counters: Counters
    figures: Figures
    seconds: float | None = None
    time_from: str | None = None
    tokens_per_second: float | None = None
    steps_per_second: float | None = None
    running: tuple[float | None, float | None] = (None, None)

    @property
    def mean_running(self) -> float | None:
        """The mean of the two readings of running requests; they are moments, not the whole interval."""
        known = [n for n in self.running if n is not None]
        return sum(known) / len(known) if known else None


def between(before: Snapshot, after: Snapshot, seconds: float | None = None) -> Interval:
    """The interval from one snapshot to the other. seconds: its length, where the person gives it.

    UserError when the server was restarted in between: then no difference means anything.
    """
    if before.started is not None and after.started is not None and abs(before.started - after.started) > 1:
        raise UserError(_restarted(before, after))
    try:
        counts = after.counters.since(before.counters)
    except ValueError as error:
        raise UserError(_restarted(before, after)) from error
    known, source = _length(before, after, seconds)
    return Interval(
        before=before.name,
        after=after.name,
        counters=counts,
        figures=figures(counts),
        seconds=known,
        time_from=source,
        tokens_per_second=_rate(counts.output_tokens, known),
        steps_per_second=_rate(counts.steps, known),
        running=(before.counters.running, after.counters.running),
    )


def intervals(snapshots: Sequence[Snapshot], seconds: float | None = None) -> list[Interval]:
    """The intervals between successive snapshots of one server, in their order in time.

    seconds: the length of the one interval between two snapshots. UserError where it is given for more, or when the
    server was restarted.
    """
    if seconds is not None and len(snapshots) != 2:
        raise UserError(
            "--seconds is the time between two snapshots of a server; give two texts of /metrics, "
            f"not {len(snapshots)}, or leave it out."
        )
    ordered = in_order(snapshots)
    return [between(a, b, seconds) for a, b in zip(ordered, ordered[1:], strict=False)]


def in_order(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Snapshots of one server from the first to the last.

    By their times where rows tell them. Files' times may be those of a copy, so they and then the order given are
    taken only where no counter falls. Without times the counts decide: counters only grow.
    """
    timed = sorted(snapshots, key=lambda s: s.at or 0.0)
    if all(s.at is not None and s.time_from != FILES for s in snapshots):
        return timed
    known = all(_length(a, b, None)[0] is not None for a, b in zip(timed, timed[1:], strict=False))
    for order in ([timed] if known else []) + [list(snapshots)]:
        if all(_grows(a.counters, b.counters) for a, b in zip(order, order[1:], strict=False)):
            return order
    return timed if known else sorted(snapshots, key=lambda s: _counted(s.counters))


def _grows(before: Counters, after: Counters) -> bool:
    try:
        after.since(before)
    except ValueError:
        return False
    return True


def _counted(c: Counters) -> tuple[int, int, int]:
    return c.output_tokens or 0, c.steps or 0, c.drafted or 0


def _length(before: Snapshot, after: Snapshot, given: float | None) -> tuple[float | None, str | None]:
    """(seconds, where they come from) between two snapshots; (None, None) where that is not known."""
    if given is not None:
        return given, GIVEN
    sources = {before.time_from, after.time_from}
    if before.at is None or after.at is None or (ROWS in sources and len(sources) > 1):
        return None, None
    seconds = after.at - before.at
    of_files = FILES in sources
    if seconds <= 0 or (of_files and seconds < SHORTEST_SECONDS):
        return None, None
    return seconds, FILES if of_files else after.time_from


def _rate(count: int | None, seconds: float | None) -> float | None:
    return None if count is None or not seconds else count / seconds


def _restarted(before: Snapshot, after: Snapshot) -> str:
    return (
        f"The server was restarted between {before.name} and {after.name}, or they are of two servers, so their counts "
        "cannot be subtracted; give two snapshots of one life of one server."
    )
