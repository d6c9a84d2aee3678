"""What the next start of a campaign is for."""

import random
from collections.abc import Sequence

from runners.core import progress
from runners.measure.campaign_run import Open, Plan, Run
from runners.profiles import points
from runners.profiles.points import Comparison, Load


def first_pass(this: Run) -> list[Plan]:
    """Every comparison at the points that this campaign has not measured yet, those of one base together.

    The order is random, and another one in each campaign, so that no comparison always meets the machine cold. In a
    round bases come first.
    """
    chance = random.Random(this.campaign.seed)
    found = [plan for c in _all(this) if (plan := Plan(c, _not_measured(this, c))).loads]
    chance.shuffle(found)
    bases = list(dict.fromkeys(p.comparison.base for p in found))
    # A base that is compared with another engine's comes last of its own, next to that one's: both are alive then.
    across = [
        p
        for p in found
        if p.comparison.other is not None and this.profile.base_of(p.comparison.other) == p.comparison.other
    ]
    if not this.paired:
        return _bases_first(this, found)
    ordered: list[Plan] = []
    for base in bases:
        own = [p for p in found if p.comparison.base == base and p not in across]
        ordered += own + [p for p in across if p.comparison.base == base]
    return ordered


def of_open_points(this: Run, found: Sequence[Open]) -> list[Plan]:
    """The next start, or the next round, for the points that are open; empty when the budget cannot decide any.

    The comparison with the most open points a second comes first. Points that no affordable number of starts would
    decide get no more time.
    """
    plans: dict[Comparison, list[Load]] = {}
    for one in found:
        for comparison in _all(this):
            sides = comparison.sides
            pair = (this.profile.base_of(one.configuration), one.configuration)
            mine = sides == pair if this.paired else sides[0] in pair
            if mine and this.starts_of(comparison) < this.campaign.most_starts and one.starts is not None:
                loads = plans.setdefault(comparison, [])
                loads += [one.load] if one.load not in loads else []
    possible = [Plan(c, loads) for c, loads in plans.items() if not set(c.sides) & set(this.failed)]
    affordable = [p for p in possible if this.seconds(p) <= this.left()]
    if possible and not affordable:
        progress.say(f"{len(found)} points stay open: the time is up")
    if not this.paired:
        return _bases_first(this, affordable)
    chance = random.Random(f"{this.campaign.seed} {len(this.campaign.visits)}")
    best = sorted(affordable, key=lambda p: (-len(p.loads) / max(this.seconds(p), 1e-6), chance.random()))
    return best[:1]


def _bases_first(this: Run, plans: Sequence[Plan]) -> list[Plan]:
    """Of a round: the answers of a drafting configuration are compared with those of its base."""
    return sorted(plans, key=lambda p: this.profile.base_of(p.comparison.base) not in (None, p.comparison.base))


def _all(this: Run) -> list[Comparison]:
    """The comparisons, or, on a machine on which only one server fits, each configuration by itself."""
    if this.paired:
        return this.comparisons
    return [Comparison(name) for name in dict.fromkeys(n for c in this.comparisons for n in c.sides)]


def _not_measured(this: Run, comparison: Comparison) -> list[Load]:
    """The points without a block in this campaign."""
    done = {
        Load(*point)
        for v in this.campaign.visits
        if set(comparison.sides) <= set(v.configurations)
        for point in v.points
    }
    return [load for load in points.loads(this.profile, comparison) if load not in done]
