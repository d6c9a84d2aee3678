"""What one run of a campaign knows: what it is about, its servers, its time, what went wrong."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from runners.measure.campaign_record import Campaign
from runners.measure.estimate import Clock
from runners.measure.server_pool import ServerPool
from runners.profiles.points import Comparison, Load
from runners.profiles.profile import Profile


@dataclass(frozen=True)
class Open:
    """A point whose answer is still open, and about how many more starts would decide it (None: not in sight)."""

    configuration: str
    load: Load
    starts: float | None = None


@dataclass
class Plan:
    """One start: the configurations that are compared in it, and where."""

    comparison: Comparison
    loads: list[Load]


# Which points are still open and how many there are in all, from the ledgers as they are now.
Judge = Callable[[], tuple[list[Open], int]]


@dataclass
class Run:
    """One run of a campaign: what it is about, its servers, what went wrong."""

    profile: Profile
    preset: str
    runs: Path
    campaign: Campaign
    comparisons: list[Comparison]
    pool: ServerPool
    clock: Clock
    save: Callable[[], None]
    began: float = field(default_factory=time.monotonic)
    spent_before: float = 0.0
    foretold_s: float = 0.0  # of the starts that were made
    took_s: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)  # configuration -> why it cannot be measured
    met: dict[Comparison, set[int]] = field(default_factory=dict)  # lives of servers that have served it

    @property
    def paired(self) -> bool:
        """Are the sides of a comparison alive at once?"""
        return self.pool.at_once > 1

    def spent(self) -> float:
        """Seconds of this campaign so far."""
        return self.spent_before + time.monotonic() - self.began

    def left(self) -> float:
        """Seconds of its budget that are left."""
        return math.inf if self.campaign.seconds is None else self.campaign.seconds - self.spent()

    def seconds(self, plan: Plan) -> float:
        """Expected seconds of a start, by the pace of those that were made."""
        sides = plan.comparison.sides
        # A server that has served this comparison is started anew for it.
        met = plan.comparison in self.met
        return self.paced(self.clock.visit(sides, plan.loads, () if met else self.pool.names()).total)

    def paced(self, expected: float) -> float:
        """Seconds as foretold, corrected by the pace so far. One start says little about the rest: it is weighed with
        two more that came as foretold.
        """
        usual = 2 * max(expected, 1.0)
        return expected * (self.took_s + usual) / (self.foretold_s + usual)

    def fits(self, sides: tuple[str, ...], load: Load) -> bool:
        """Is there time for one more block?"""
        return self.paced(sum(self.clock.cell(name, load) for name in sides)) <= self.left()

    def can_begin(self, plan: Plan) -> bool:
        """Is there time to bring the servers up and to measure a block of each point at least once?"""
        alive = self.pool.names()
        starts = sum(self.clock.start(name) for name in plan.comparison.sides if name not in alive)
        return self.paced(starts) < self.left() and self.fits(plan.comparison.sides, plan.loads[0])

    def starts_of(self, comparison: Comparison) -> int:
        """How often it was measured in this campaign."""
        names = set(comparison.sides)
        return sum(names <= set(v.configurations) for v in self.campaign.visits if v.points)
