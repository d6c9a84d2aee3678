"""Was the machine in its usual state while a cell was measured? Judged against the campaign's own spread.

What is known of the machine's state: cores that other work used and time that the host took away (steal), each over a
cell; the speed of matrix products and the time that a server needed, each at a start. A host has its own usual level of
each, so a value is compared with those of the campaign so far (median and median absolute deviation, MAD) and not
with one fixed ceiling; as long as there are few, the profile's ceilings hold. No check sees a machine that is slower
than usual for a while that is shorter than a cell.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

from runners.profiles.gate_limits import Gates

NOT_QUIET = "the machine was not quiet"

FEWEST = 5  # values that a median and its deviation need
DEVIATIONS = 5  # MADs: of a normal spread 0.07% lie outside on one side
SLOWER = 0.8  # products below this share of the median: the whole of published campaigns lies above 0.85 of it
LONGER = 1.5  # a start above this multiple of the median of its engine, and longer by LONGER_SECONDS
LONGER_SECONDS = 5.0  # starts of a second are known to a third of one only


class MachineState:
    """One campaign's values so far. Every cell's values enter, those of cells that failed too: medians bear them."""

    def __init__(self, limits: Gates):
        self._limits = limits
        self._neighbours: list[float] = []  # cores
        self._steal: list[float] = []  # share of all cores' time
        self._gflops: list[float] = []
        self._ready: dict[str, list[float]] = defaultdict(list)  # engine -> seconds of its starts
        self._start: dict[str, str] = {}  # configuration -> what was wrong at its last start

    def started(self, configuration: str, engine: str, ready_seconds: float, gflops: float | None) -> str | None:
        """Note a start: the reason why its cells are void, or None. It holds for them until the next start.

        ready_seconds: until the server answered. gflops: machine_speed.gflops before the start; None where not taken.
        """
        reason = None
        if self._limits.check_neighbours:
            reason = self._slow_products(gflops) or self._slow_start(engine, ready_seconds)
        if gflops is not None:
            self._gflops.append(gflops)
        self._ready[engine].append(ready_seconds)
        self._start[configuration] = reason or ""
        return reason

    def cell(self, configuration: str, neighbour_cores: float, steal_share: float) -> str | None:
        """Note a cell: the reason why it is void, or None. Cores of other work; share of all cores' time."""
        limits, reason = self._limits, None
        if limits.check_neighbours:
            reason = (
                _above(neighbour_cores, self._neighbours, limits.neighbour_cores_ceiling, "other work used", _cores)
                or _above(steal_share, self._steal, limits.steal_ceiling, "steal", _percent)
                or self._start.get(configuration)
                or None
            )
        self._neighbours.append(neighbour_cores)
        self._steal.append(steal_share)
        return reason

    def _slow_products(self, gflops: float | None) -> str | None:
        if gflops is None or len(self._gflops) < FEWEST:
            return None
        middle, mad = spread(self._gflops)
        if gflops >= min(middle - DEVIATIONS * mad, SLOWER * middle):
            return None
        return f"{NOT_QUIET}: matrix products ran at {gflops:.0f} GFLOP/s before this start, usually at {middle:.0f}"

    def _slow_start(self, engine: str, seconds: float) -> str | None:
        earlier = self._ready[engine]
        if len(earlier) < FEWEST:
            return None
        middle, mad = spread(earlier)
        if seconds <= max(middle + DEVIATIONS * mad, LONGER * middle, middle + LONGER_SECONDS):
            return None
        return f"{NOT_QUIET}: this start took {seconds:.0f} s, usually {middle:.0f} s with this engine"


def spread(values: Sequence[float]) -> tuple[float, float]:
    """(median, median absolute deviation from it)."""
    middle = median(values)
    return middle, median(abs(v - middle) for v in values)


def _above(
    value: float, earlier: Sequence[float], ceiling: float, what: str, shown: Callable[[float], str]
) -> str | None:
    """Above the profile's ceiling as long as there are few values, above the campaign's usual level from then on.

    A value is unusual from half of the ceiling above the median on: less shows in no figure. No limit is above twice
    the ceiling: a machine that is never quiet has no usual level to measure at.
    """
    if len(earlier) < FEWEST:
        return f"{NOT_QUIET}: {what} {shown(value)}, ceiling {shown(ceiling)}" if value > ceiling else None
    middle, mad = spread(earlier)
    limit = min(middle + max(DEVIATIONS * mad, ceiling / 2), 2 * ceiling)
    if value <= limit:
        return None
    return f"{NOT_QUIET}: {what} {shown(value)}, limit {shown(limit)} where {shown(middle)} is usual"


def _cores(value: float) -> str:
    return f"{value:.2g} cores"


def _percent(value: float) -> str:
    return f"{100 * value:.2g}%"
