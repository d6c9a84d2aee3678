"""How blocks, starts and campaigns of an engine scatter: what the intervals of its comparisons rest on.

A campaign of a few starts knows little of its own noise. Earlier campaigns of the same profile, the published runs,
stand in for what it cannot see (`earlier`), with their own degrees of freedom. Where nothing is known an interval is
absent and the answer "undecided".
"""

import functools
import os
from collections.abc import Callable

import pandas as pd

from runners.analyse import blocks, inference, results, variances
from runners.analyse.blocks import Block, Campaigns, Point
from runners.analyse.inference import CAMPAIGNS, STARTS
from runners.core import paths

Logs = dict[Point, dict[Block, float]]


def of_comparisons(logs: Logs, base_of: Callable[[str], str | None], level: str = STARTS) -> variances.Variances:
    """The variances of all comparisons of configurations with their bases.

    logs: one metric of blocks.values. level: STARTS, of starts within campaigns; CAMPAIGNS, of campaigns' means, from
    comparisons that two campaigns or more hold.
    """
    spreads: list[variances.Spread] = []
    for point, own in logs.items():
        base = base_of(point.configuration)
        if base is None or base == point.configuration:
            continue
        paired = blocks.ratios(own, logs.get(point._replace(configuration=base), {}))
        spreads += of_one(blocks.by_start(paired), point, level)
    return variances.Variances(tuple(spreads))


def of_sides(logs: Logs, configurations: set[str], level: str = STARTS) -> variances.Variances:
    """The variances of configurations by themselves, for sides that no block holds together."""
    mine = [(point, own) for point, own in logs.items() if point.configuration in configurations]
    return variances.Variances(tuple(s for point, own in mine for s in of_one(blocks.by_start(own), point, level)))


def of_one(logs: Campaigns, point: Point, level: str = STARTS) -> list[variances.Spread]:
    """One comparison's spreads: one a campaign for STARTS, one in all for CAMPAIGNS. point: what is compared."""
    if level == STARTS:
        return [variances.spread(list(s.values()), (name, point.configuration), point) for name, s in logs.items()]
    if len(logs) < 2:
        return []
    units = inference.units([list(s.values()) for s in logs.values()])
    return [variances.spread(units, (CAMPAIGNS, point.configuration), point)]


def earlier(cells: pd.DataFrame) -> pd.DataFrame:
    """The published cells of the same profile that come from campaigns of which `cells` has no row; often none.

    Simulated cells have no earlier campaign.
    """
    simulated = "simulated" in cells and bool(cells["simulated"].isin([True]).any())
    if cells.empty or simulated or "profile" not in cells:
        return cells.iloc[:0]
    published = _published(str(cells["profile"].iloc[0]), _state(str(cells["profile"].iloc[0])))
    if published.empty:
        return published
    # A cell that is measured again keeps its key; no two are measured at one time.
    same = set(zip(cells["key"], cells["started_at"] if "started_at" in cells else cells["key"], strict=True))
    campaigns = blocks.numbered(published)["campaign"]
    here = pd.Series([pair in same for pair in zip(published.key, published.started_at, strict=True)], published.index)
    others = ~campaigns.isin(set(campaigns[here]))
    # A name of its own: campaigns from before they had names are all called "".
    return published.assign(campaign="published " + campaigns)[others]


@functools.lru_cache(maxsize=4)
def _published(profile: str, state: tuple[float, ...]) -> pd.DataFrame:
    return results.cells(paths.PUBLISHED_RUNS, profile)


def _state(profile: str) -> tuple[float, ...]:
    """Changes when the published ledgers of a profile do."""
    ledgers = (folder / "cells.jsonl" for folder in results.folders(paths.PUBLISHED_RUNS, profile))
    return tuple(os.path.getmtime(ledger) for ledger in ledgers if ledger.is_file())
