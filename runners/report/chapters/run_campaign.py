"""The page of a campaign: what is compared, its starts, how far it came."""

import pandas as pd

from runners.core.format import minutes
from runners.measure.campaign_record import Campaign
from runners.profiles import points
from runners.profiles.profile import Profile


def comparisons_table(profile: Profile, preset: str | None, names: list[str] | None) -> pd.DataFrame:
    """Each comparison with its points."""
    rows = []
    for comparison in points.comparisons(profile, names or profile.at_preset(preset)):
        loads = points.loads(profile, comparison)
        rows.append(
            {
                "base": comparison.base,
                "compared with it": comparison.other or "nothing",
                "prompts": ", ".join(dict.fromkeys(load.workload for load in loads)),
                "C": ", ".join(str(c) for c in dict.fromkeys(load.concurrency for load in loads)),
            }
        )
    return pd.DataFrame(rows)


def campaign_sentence(done: Campaign) -> str:
    """How long it took and how it ended."""
    blocks, budget = sum(len(v.points) for v in done.visits), done.seconds
    allowed = "without a limit" if budget is None else f"of {minutes(budget)} allowed"
    return (
        f"Campaign `{done.id}` (preset {done.preset}, seed {done.seed}): {len(done.visits)} starts, {blocks} blocks, "
        f"{minutes(done.spent_s)} {allowed}; {'finished' if done.finished else 'not finished'}."
    )


def starts_table(done: Campaign) -> pd.DataFrame:
    """One row a start, in the order in which they were made."""
    rows = []
    for visit in done.visits:
        where = dict.fromkeys(f"{workload} C={concurrency}" for workload, concurrency in visit.points)
        rows.append(
            {
                "start": visit.start,
                "alive together": " and ".join(visit.configurations),
                "blocks": len(visit.points),
                "points": ", ".join(where),
                "s": round(visit.seconds),
            }
        )
    return pd.DataFrame(rows)
