"""The verdict as data: what to serve for each use, and at each point whether speculation pays and why."""

from collections.abc import Collection
from pathlib import Path

import pandas as pd

from runners.analyse import comparisons, goodput, inference, results, step_cost, summarise
from runners.analyse.blocks import Point
from runners.analyse.inference import LEVEL
from runners.analyse.step_cost import MARGIN
from runners.analyse.verdict import store
from runners.analyse.verdict.explain import cause, flip, kind
from runners.core import format
from runners.profiles import load

# use -> (title, metric, unit, concurrency or None for the best one)
USES = {
    "single_stream": ("Single stream (one request at a time)", "stream", "tok/s per stream", 1),
    "throughput": ("Throughput (best measured concurrency)", "throughput", "tok/s in all", None),
    "goodput": ("Goodput (answers within the profile's latency limits)", "goodput", "tok/s in all", None),
}


def _choose(data: comparisons.Data, summary: pd.DataFrame, use: str) -> dict | None:
    """Best and runner-up configuration for a use in one workload; None when nothing was measured.

    summary: summarise.summarise of that workload.
    """
    title, metric, unit, concurrency = USES[use]
    ranked = _ranked(summary, metric, concurrency)
    if ranked.empty:
        return None
    best = {"title": title, "unit": unit, **_contender(ranked.iloc[0], metric)}
    if len(ranked) == 1:
        return best | {"runner_up": None, "ratio": None, "clear": None}
    first, second = ranked.iloc[0], ranked.iloc[1]
    ratio = _ratio(data, first, second, metric)
    return best | {
        "runner_up": _contender(second, metric),
        "ratio": [ratio.ratio, *ratio.interval()],
        "clear": bool(ratio.interval()[0] > 1),
    }


def _ranked(summary: pd.DataFrame, metric: str, concurrency: int | None) -> pd.DataFrame:
    """Each configuration's best row by the metric, the best first; at one concurrency, or at its best one for None."""
    rows = summary[summary[metric].notna() & (summary[metric] > 0)]
    if concurrency is not None:
        rows = rows[rows.concurrency == concurrency]
    return rows.sort_values(metric, ascending=False, kind="stable").drop_duplicates("configuration")


def _contender(row: pd.Series, metric: str) -> dict:
    """What a verdict says of one configuration."""
    names = {c: row[c] for c in ("configuration", "engine", "method", "concurrency")}
    return names | {"value": row[metric], "lo": row[f"{metric}_lo"], "hi": row[f"{metric}_hi"]}


def _ratio(data: comparisons.Data, first: pd.Series, second: pd.Series, metric: str) -> inference.Estimate:
    """The ratio of two rows of a summary; of the pool, the mean over its workloads."""
    workload = first["workload"]
    workloads = sorted(set(data.cells.workload)) if workload == "all" else [workload]
    a, b = ((r["configuration"], int(r["concurrency"])) for r in (first, second))
    return comparisons.mean(
        [comparisons.ratio(data, Point(a[0], w, a[1]), Point(b[0], w, b[1]), metric) for w in workloads]
    )


def _uses(data: comparisons.Data, summary: pd.DataFrame) -> tuple[dict, list[dict]]:
    """(use -> choice over all workloads pooled, the choice of each use and workload)."""
    uses, by_workload = {}, []
    for use in USES:
        if use == "goodput" and goodput.COLUMN not in data.cells:
            continue  # the profile sets no limits
        for workload in [*sorted(set(data.cells.workload)), "all"]:
            chosen = _choose(data, summary[summary.workload == workload], use)
            if workload == "all":
                uses[use] = chosen
            elif chosen:
                by_workload.append({"use": use, "workload": workload, **chosen})
    return uses, by_workload


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
) -> dict:
    """The verdict as plain data: uses (overall and by workload), points, what is not measured, what is void.

    cells, requests, statuses: the frames of results.py. `uses[use]` holds the best configuration with its figure,
    runner-up, ratio [point, low, high] and whether that is clearly above 1, or is None; overall figures pool the
    workloads. `points` has one row a speculative configuration, workload ("all" is the pool) and concurrency. `serve`
    is the throughput winner, else the single-stream one. margin: the profile's practical margin, a share. eager:
    configurations that lost their engine's graphs (results.eager).
    """
    # Synthetic acceptance measures an engine's cost; nobody can serve it.
    cells = cells[cells.forced_accept_length.isna()]
    summary = summarise.summarise(cells, with_pooled=True)
    uses, by_workload = _uses(comparisons.Data(cells, requests), summary)
    costs = step_cost.step_costs(cells, requests, margin)
    winner = uses["throughput"] or uses["single_stream"]
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
            "serve": winner["configuration"] if winner else None,
            "uses": uses,
            "by_workload": by_workload,
            "points": [_point(row, eager) for row in costs.to_dict("records")],
            "not_measured": missing[["configuration", "reason"]].to_dict("records"),
            "void_cells": int((cells.status != "ok").sum()),
        }
    )


def of(runs_root: str | Path, profile: str) -> dict:
    """`decide` on the ledgers of a profile, with the profile's own margin and latency limits."""
    plan = load.load_if_known(profile)
    margin = plan.practical_margin if plan else MARGIN
    requests = results.requests(runs_root, profile)
    limits = plan.workload.latency_limits if plan else None
    cells = goodput.attach(results.cells(runs_root, profile), requests, limits)
    statuses = results.statuses(runs_root, profile)
    return decide(cells, requests, statuses, profile, margin, eager=results.eager(runs_root, profile))


def costs(verdict: dict) -> pd.DataFrame:
    """The points of a verdict as the frame that step_cost.step_costs made, to six significant figures."""
    frame = pd.DataFrame(verdict["points"], columns=step_cost.COLUMNS)
    numbers = [c for c in step_cost.COLUMNS if c not in step_cost.TEXT]
    return frame.assign(**{c: pd.to_numeric(frame[c]) for c in numbers})
