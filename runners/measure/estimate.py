"""How long what is still to be measured takes: from earlier runs, else from the profile's assumptions."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.measure.ledger import Ledger
from runners.profiles import points
from runners.profiles.points import Comparison, Load
from runners.profiles.profile import Profile


@dataclass(frozen=True)
class Estimate:
    """Seconds of one start of a comparison, by what they are spent on."""

    cells: float
    starts: float

    @property
    def total(self) -> float:
        return self.cells + self.starts


class Clock:
    """Expected seconds of cells and starts: from earlier runs of this profile where there are any."""

    def __init__(self, profile: Profile, preset: str | None, *runs: Path):
        self._profile, self._preset = profile, profile.preset(preset)
        self._tokens = profile.output_tokens(preset)
        # (configuration, workload, concurrency) -> output tokens and seconds of each good cell
        self._cells: dict[tuple[str, str, int], list[tuple[int, float]]] = {}
        self._starts: dict[str, float] = {}  # configuration -> seconds of its last start
        for root in runs:
            for configuration in profile.configurations:
                ledger = Ledger(root / profile.name / configuration)
                for row in ledger.rows():
                    if row["status"] == "ok" and row["seconds"] and row.get("load", "closed") == "closed":
                        cell = (configuration, row["workload"], row["concurrency"])
                        self._cells.setdefault(cell, []).append((row["output_tokens"], row["seconds"]))
                for start in ledger.starts():
                    self._starts[configuration] = start["ready_seconds"]

    def known(self) -> bool:
        """Is there any earlier run to go by?"""
        return bool(self._cells)

    def basis(self) -> str:
        """Where the seconds come from, in words."""
        return "earlier runs" if self.known() else "the profile's assumptions"

    def cell(self, configuration: str, load: Load) -> float:
        """Expected seconds of one window with its ramp."""
        c, rate = load.concurrency, self._rate(configuration, load)
        # In its time the window ends the answers that it is for and, where there are several streams, about C others.
        window = (self._preset.requests[c] + (c if c > 1 else 0)) * self._tokens / rate
        # Before it opens each request reads its prompt and makes some tokens: about a quarter of an answer's time.
        return min(window, self._preset.window_seconds) + c * self._tokens / rate / 4

    def _rate(self, configuration: str, load: Load) -> float:
        """Output tokens a second of all streams together."""
        earlier = self._cells.get((configuration, load.workload, load.concurrency))
        if earlier:
            return max(sum(n for n, _ in earlier) / sum(s for _, s in earlier), 1e-3)
        speed = self._profile.timing.stream_tokens_per_second.get(self._engine(configuration), 30.0)
        # Before anything is measured: C streams together are taken to be C / 3 times as fast as one alone.
        return speed * max(1.0, load.concurrency / 3)

    def start(self, configuration: str) -> float:
        """Expected seconds from a server's start until it answers; 0 for one that runs already."""
        chosen = self._profile.configuration(configuration)
        if chosen.attach is not None:
            return 0.0
        assumed = self._profile.timing.start_seconds.get(chosen.engine, 60.0)
        return self._starts.get(configuration, assumed)

    def visit(self, sides: Iterable[str], loads: Collection[Load], alive: Collection[str] = ()) -> Estimate:
        """Expected seconds of one start of these sides: their blocks at every load, and what is not alive yet."""
        names = list(sides)
        blocks = self._preset.repeats
        return Estimate(
            cells=sum(self.cell(n, load) * blocks[load.concurrency] for n in names for load in loads),
            starts=sum(self.start(n) for n in names if n not in alive),
        )

    def _engine(self, configuration: str) -> str:
        return self._profile.configuration(configuration).engine


def first_pass(profile: Profile, names: list[str], clock: Clock) -> dict[Comparison, Estimate]:
    """Comparison -> seconds of its first start. Comparisons of one base follow each other, so it is started once."""
    found, last = {}, ""
    compared = points.comparisons(profile, names)
    if profile.hardware.servers_at_once == 1:
        compared = [Comparison(n) for n in dict.fromkeys(n for c in compared for n in c.sides)]
    for comparison in sorted(compared, key=lambda c: c.base):
        alive = [comparison.base] if comparison.base == last else []
        found[comparison] = clock.visit(comparison.sides, points.loads(profile, comparison), alive)
        last = comparison.base
    return found
