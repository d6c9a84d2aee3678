"""Goodput: the tables and sentences about it, and the limits it is counted under."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from runners.analyse import goodput
from runners.core import format
from runners.profiles.latency import LatencyLimits

AROUND = (0.8, 0.9, 1.0, 1.1, 1.25, 1.5)  # the scales of the limits that the table of winners shows


@dataclass(frozen=True)
class Goodput:
    """What the chapter shows of goodput; all empty where the profile sets no limits or nothing was measured."""

    points: pd.DataFrame  # goodput.points
    by_limit: pd.DataFrame  # goodput.by_limit
    attainment: pd.DataFrame  # goodput.attainment_by_limit


def measured(cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits | None) -> Goodput:
    """Goodput of all loads, closed and open."""
    if limits is None or cells.empty:
        nothing = pd.DataFrame(columns=goodput.POINTS)
        return Goodput(nothing, nothing, nothing)
    if "forced_accept_length" in cells:
        cells = cells[cells.forced_accept_length.isna()]  # nobody can serve what an engine only pretends
    found = goodput.points(cells, requests, limits)
    return Goodput(found, goodput.by_limit(found), goodput.attainment_by_limit(cells, requests, limits))


def limits_sentence(limits: LatencyLimits) -> str:
    """The profile's latency limits, and how many requests must keep them."""
    end = f", {limits.e2e_ms:g} ms in all" if limits.e2e_ms is not None else ""
    return (
        f"Limits: {limits.ttft_ms:g} ms to the first token, {limits.tpot_ms:g} ms a token after it{end}; "
        f"{limits.attainment:.0%} of the requests must keep them."
    )


def load_text(row: Any) -> str:
    """A load as a reader says it: `C = 4`, or `1.5 requests/s`."""
    return f"{row.rate:g} requests/s" if row.load == "open" else f"C = {row.concurrency:.0f}"


def blocks_text(row: Any) -> str:
    """Whether the load reaches the floor: `yes`, `no`, and where the blocks do not agree how many of them do."""
    if row.attained_blocks in (0, row.blocks):
        return "yes" if row.needs <= 1 else "no"
    return f"{'yes' if row.needs <= 1 else 'no'}, but {row.attained_blocks} of {row.blocks} blocks"


def points_table(found: pd.DataFrame) -> pd.DataFrame:
    """Every load with its attainment, and by how much the limits would have to change for it to just reach the floor.

    found: goodput.points.
    """
    rows = list(found.itertuples())
    return pd.DataFrame(
        {
            "configuration": found.configuration,
            "workload": found.workload,
            "load": [load_text(r) for r in rows],
            "requests within the limits": [f"{r.attainment:.0%} of {r.requests}" for r in rows],
            "counts": [blocks_text(r) for r in rows],
            "limits it needs": [f"×{r.needs:.2f}" if r.needs < 1e9 else "none" for r in rows],
            "tok/s": found.tokens_per_second.astype(float).round(1),
            "requests/s": found.requests_per_second.astype(float).round(2),
        }
    )


def best_table(found: pd.DataFrame) -> pd.DataFrame:
    """The most tokens per second within the limits of each workload and kind of load. found: goodput.points."""
    return points_table(goodput.winners(found))


def none_sentence(found: pd.DataFrame) -> str:
    """Which workloads no configuration serves within the limits; empty where each has one."""
    served = set(goodput.winners(found).workload)
    left = sorted(set(found.workload) - served)
    return f"None meets the limits at any measured load: {format.listed(left)}." if left else ""


def limits_table(found: pd.DataFrame) -> pd.DataFrame:
    """Who serves most tokens per second within the limits, under tighter and looser ones. found: goodput.points."""
    every = found[["workload", "load"]].drop_duplicates()
    columns = {}
    for scale in AROUND:
        best = {(r.workload, r.load): r for r in goodput.winners(found, scale).itertuples()}
        columns[f"limits ×{scale:g}"] = [
            f"{r.configuration}, {load_text(r)}: {r.tokens_per_second:.0f}" if r else "none"
            for r in (best.get(key) for key in every.itertuples(index=False, name=None))
        ]
    loads = ["arrivals at a rate" if load == "open" else "C in flight" for load in every.load]
    return pd.DataFrame({"workload": list(every.workload), "load": loads, **columns})
