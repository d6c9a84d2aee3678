"""What a campaign and a plan ask of the analysis: which points are open, and what the next hour buys."""

from pathlib import Path

from runners.analyse import inference, open_points
from runners.core.format import minutes
from runners.measure.campaign_run import Open
from runners.measure.estimate import Clock
from runners.profiles import points
from runners.profiles.points import Comparison, Load
from runners.profiles.profile import Profile


def for_campaign(runs: Path, profile: Profile, names: list[str]) -> tuple[list[Open], int]:
    """(open points, how many points there are): of the speculative ones among `names`, by the ledgers as they are now.

    A point without a good block on both sides is open too: one more start may give it one.
    """
    found = open_points.status(runs, profile.name)
    known = {(r["configuration"], Load(r["workload"], int(r["concurrency"]))): r for r in found.to_dict("records")}
    still, total = [], 0
    for comparison in points.comparisons(profile, names):
        other = comparison.other
        if other is None or profile.base_of(other) != comparison.base:
            continue
        for load in points.loads(profile, comparison):
            total += 1
            row = known.get((other, load))
            if row is None:
                still.append(Open(other, load, 1))
            elif row["pays"] == inference.UNDECIDED:
                still.append(Open(other, load, open_points.expected_starts(row)))
    return still, total


def plan_lines(runs: Path, profile: Profile, preset: str | None, clock: Clock) -> list[str]:
    """What is still open by the runs that are there, and about how long it takes to decide it; empty without runs."""
    if open_points.status(runs, profile.name).empty:
        return []
    still, total = for_campaign(runs, profile, profile.at_preset(preset))
    sight = [o for o in still if o.starts is not None]
    lines = [f"{total - len(still)} of {total} points are decided by the runs that are there"]
    if still:
        lines[0] += f"; {len(still)} are open"
    seconds = sum((o.starts or 0) * _one_start(profile, o, sight, clock) for o in sight)
    if sight:
        lines.append(f"about {minutes(seconds)} more would decide {len(sight)} of them (report --more)")
    if len(sight) < len(still):
        lines.append(f"{len(still) - len(sight)} are so near the margin that no number of starts in sight decides them")
    return lines


def _one_start(profile: Profile, one: Open, others: list[Open], clock: Clock) -> float:
    """Seconds of one start for one point; points of a comparison share its start-up."""
    sides = Comparison(profile.base_of(one.configuration) or one.configuration, one.configuration).sides
    spent, sharing = clock.visit(sides, [one.load]), sum(o.configuration == one.configuration for o in others)
    return spent.cells + spent.starts / max(sharing, 1)
