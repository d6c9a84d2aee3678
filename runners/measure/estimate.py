"""How long the cells take that are still to be measured: from earlier runs, else from the profile's assumptions."""

from dataclasses import dataclass
from pathlib import Path

from runners.measure.cell_key import missing
from runners.measure.ledger import Ledger
from runners.profiles.points import Point
from runners.profiles.profile import Profile

WARM_UP_TOKENS = 16  # output tokens of a warm-up request


@dataclass(frozen=True)
class Estimate:
    """Seconds of one configuration, by what they are spent on; `basis` says where they come from."""

    cells: float
    warm_ups: float
    starts: float
    basis: str

    @property
    def total(self) -> float:
        return self.cells + self.warm_ups + self.starts


class Clock:
    """Expected seconds of cells and starts: from earlier runs of this profile where there are any."""

    def __init__(self, profile: Profile, *runs: Path):
        self._profile = profile
        # (configuration, workload, concurrency) -> output tokens and seconds of each good cell
        self._cells: dict[tuple[str, str, int], list[tuple[int, float]]] = {}
        self._starts: dict[str, float] = {}  # configuration -> seconds of its last start
        for root in runs:
            for configuration in profile.configurations:
                ledger = Ledger(root / profile.name / configuration)
                for row in ledger.rows():
                    if row["status"] == "ok" and row.get("load", "closed") == "closed":
                        cell = (configuration, row["workload"], row["concurrency"])
                        self._cells.setdefault(cell, []).append((row["output_tokens"], row["seconds"]))
                for start in ledger.starts():
                    self._starts[configuration] = start["ready_seconds"]

    def known(self) -> bool:
        """Is there any earlier run to go by?"""
        return bool(self._cells)

    def cell(self, configuration: str, point: Point) -> float:
        """Expected seconds of one cell."""
        tokens = point.requests * self._profile.workload.output_tokens
        earlier = self._cells.get((configuration, point.workload, point.concurrency))
        if earlier:
            return tokens * sum(s for _, s in earlier) / max(sum(n for n, _ in earlier), 1)
        speed = self._profile.timing.stream_tokens_per_second.get(self._engine(configuration), 30.0)
        # Before anything is measured: C streams together are taken to be C / 3 times as fast as one alone.
        return tokens / (speed * max(1.0, point.concurrency / 3))

    def warm_up(self, configuration: str, point: Point) -> float:
        """Expected seconds of the warm-up before a block of cells at this concurrency."""
        tokens = point.requests * self._profile.workload.output_tokens
        # By the cell's seconds per token. A few seconds in all, so it need not be exact.
        return self.cell(configuration, point) * min(point.concurrency, 4) * WARM_UP_TOKENS / max(tokens, 1)

    def start(self, configuration: str) -> float:
        """Expected seconds from a server's start until it answers."""
        assumed = self._profile.timing.start_seconds.get(self._engine(configuration), 60.0)
        return self._starts.get(configuration, assumed)

    def _engine(self, configuration: str) -> str:
        return self._profile.configuration(configuration).engine


def estimate(profile: Profile, preset: str | None, runs: Path, clock: Clock) -> dict[str, Estimate]:
    """Configuration -> seconds still to spend, finished cells left out."""
    found = {}
    for configuration, chosen in profile.configurations.items():
        todo = missing(profile, configuration, preset, runs)
        # One start a round, one warm-up a block of cells of the same concurrency. An attached server is not started.
        blocks = {(p.round, p.concurrency): p for p in todo}
        starts = len({p.round for p in todo}) if chosen.attach is None else 0
        found[configuration] = Estimate(
            cells=sum(clock.cell(configuration, p) for p in todo),
            warm_ups=sum(clock.warm_up(configuration, p) for p in blocks.values()),
            starts=starts * clock.start(configuration),
            basis="earlier runs" if clock.known() else "the profile's assumptions",
        )
    return found
