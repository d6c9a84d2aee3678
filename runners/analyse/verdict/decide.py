"""The verdict as data: what to serve for each use, and at each point whether speculation pays and why."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd

from runners.analyse import comparisons, goodput, inference, results, step_cost, summarise
from runners.analyse.inference import LEVEL
from runners.analyse.step_cost import MARGIN
from runners.analyse.verdict import answers, next_hour, store
from runners.analyse.verdict.explain import cause, flip, kind
from runners.core import format
from runners.core.remember import remembered
from runners.profiles import load


def _point(row: dict, eager: Collection[str]) -> dict:
    """A row of step_cost.step_costs with its `kind`, `cause` and `flip`."""
    row = row if pd.notna(row["speed_up"]) else row | {"pays": format.NOT_MEASURED}
    fallback = row["configuration"] in eager
    return row | {"kind": kind(row, fallback), "cause": cause(row, fallback), "flip": flip(row)}


def decide(
    cells: pd.DataFrame,
    requests: pd.DataFrame,
    statuses: pd.DataFrame,
    profile: str = "",
    margin: float = MARGIN,
    eager: Collection[str] = (),
    mix: Mapping[str, float] | None = None,
    precisions: Mapping[str, str] | None = None,
    start_seconds: Mapping[str, float] | None = None,
) -> dict:
    """The verdict as plain data: answers, points, what is not measured, what is void.

    cells, requests, statuses: the frames of results.py. `answers` has one entry a use and workload, and one for the
    mix of workloads where there is one (answers.answers). `points` has one row a speculative configuration, workload
    and concurrency. margin: the profile's practical margin, a share. eager: configurations that lost their engine's
    graphs (results.eager). mix: the profile's shares of the workloads. precisions: of each configuration. `more`:
    what more time would decide (next_hour.next_hour). start_seconds: of each configuration's server.
    """
    # Synthetic acceptance measures an engine's cost; nobody can serve it.
    cells = cells[cells.forced_accept_length.isna()]
    cells = _closed(cells)
    costs = step_cost.step_costs(cells, requests, margin)
    costs = costs[costs.workload != "all"]
    pool = answers.Pool(comparisons.Data(cells, requests), summarise.summarise(cells), precisions or {}, margin)
    missing = statuses[statuses.status == format.NOT_MEASURED]
    units = sorted(set(costs.unit) - {inference.NOTHING})
    return store.plain(
        {
            "schema_version": store.SCHEMA_VERSION,
            "profile": profile,
            "simulated": "simulated" in cells and bool(cells.simulated.isin([True]).any()),
            "level": LEVEL,
            "margin": margin,
            "unit": " / ".join(units) or inference.NOTHING,
            "answers": answers.answers(pool, mix),
            "text": answers.texts(pool),
            "points": [_point(row, eager) for row in costs.to_dict("records")],
            "more": next_hour.next_hour(cells, margin, start_seconds or {}),
            "not_measured": missing[["configuration", "reason"]].to_dict("records"),
            "void_cells": int((cells.status != "ok").sum()),
        }
    )


def _closed(cells: pd.DataFrame) -> pd.DataFrame:
    """Without the cells of an open loop: their rate is given, so it is no speed."""
    return cells[cells.load != "open"] if "load" in cells else cells


@remembered
def of(runs_root: str | Path, profile: str) -> dict:
    """`decide` on the ledgers of a profile, with the profile's own margin, latency limits and mix."""
    plan = load.load_if_known(profile)
    margin = plan.practical_margin if plan else MARGIN
    requests = results.requests(runs_root, profile)
    limits = plan.workload.latency_limits if plan else None
    cells = goodput.attach(results.cells(runs_root, profile), requests, limits)
    statuses = results.statuses(runs_root, profile)
    return decide(
        cells,
        requests,
        statuses,
        profile,
        margin,
        eager=results.eager(runs_root, profile),
        mix=plan.workload.mix if plan else None,
        start_seconds=next_hour.start_seconds(runs_root, profile),
        precisions={name: plan.precision_of(name) for name in plan.configurations} if plan else None,
    )


def stored(runs_root: str | Path, profile: str) -> dict:
    """The verdict beside the runs; decided again from them where the file is of an older version."""
    return of(runs_root, profile) if store.is_older(runs_root, profile) else store.load(runs_root, profile)


def costs(verdict: dict) -> pd.DataFrame:
    """The points of a verdict as the frame that step_cost.step_costs made, to six significant figures."""
    frame = pd.DataFrame(verdict["points"], columns=step_cost.COLUMNS)
    numbers = [c for c in step_cost.COLUMNS if c not in step_cost.TEXT]
    return frame.assign(**{c: pd.to_numeric(frame[c]) for c in numbers})
