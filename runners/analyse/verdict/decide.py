"""The verdict: what to serve for each use, whether speculation pays there and why; data, tables, a file."""

from collections.abc import Collection
from pathlib import Path

import pandas as pd

from runners.analyse import goodput, intervals, results, step_cost, summarise
from runners.analyse.intervals import LEVEL, SEED, Interval
from runners.analyse.verdict.explain import MARGIN, cause, flip, kind, pays
from runners.core import format
from runners.profiles import load

SCHEMA_VERSION = 1
# use -> (title, metric, unit, concurrency or None for the best one)
USES = {
    "single_stream": ("Single stream (one request at a time)", "stream", "tok/s per stream", 1),
    "throughput": ("Throughput (best measured concurrency)", "throughput", "tok/s in all", None),
    "goodput": ("Goodput (answers within the profile's latency limits)", "goodput", "tok/s in all", None),
}


def _choose(pool: pd.DataFrame, summary: pd.DataFrame, requests: pd.DataFrame, use: str, level, seed) -> dict | None:
    """Best and runner-up configuration for a use in one workload; None when nothing was measured."""
    title, metric, unit, concurrency = USES[use]
    rows = summary[summary[metric].notna() & (summary[metric] > 0)]
    if concurrency is not None:
        rows = rows[rows.concurrency == concurrency]
    rows = rows.sort_values(metric, ascending=False, kind="stable").drop_duplicates("configuration")
    if rows.empty:
        return None

    def described(row: pd.Series) -> dict:
        keep = {c: row[c] for c in ("configuration", "engine", "method", "concurrency")}
        return keep | {"value": row[metric], "lo": row[f"{metric}_lo"], "hi": row[f"{metric}_hi"]}

    def cells_of(row: pd.Series) -> pd.DataFrame:
        return pool[(pool.configuration == row.configuration) & (pool.concurrency == row.concurrency)]

    found = {
        "title": title,
        "unit": unit,
        **described(rows.iloc[0]),
        "runner_up": None,
        "ratio": None,
        "clear": None,
    }
    if len(rows) > 1:
        first, second = rows.iloc[0], rows.iloc[1]
        ratio = summarise.ratio_of(cells_of(first), cells_of(second), requests, metric, level, seed)
        found |= {
            "runner_up": described(second),
            "ratio": [ratio.point, ratio.lo, ratio.hi],
            "clear": ratio.side == 1,
        }
    return found


def decide(
    cells: pd.DataFrame,
    requests: pd.DataFrame,
    statuses: pd.DataFrame,
    profile: str = "",
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = SEED,
    eager: Collection[str] = (),
) -> dict:
    """The verdict as plain data: uses (overall and by workload), points, what is not measured, what is void.

    `uses[use]` holds the best configuration with its figure, runner-up, ratio [point, lo, hi] and whether
    that is clear of 1, or is None; overall figures pool the workloads. `points` has one row per speculative
    configuration, workload ("all" is the pool) and concurrency. `eager`: configurations that lost their engine's graphs
    (tables.eager). `serve` is the throughput winner, else the
    single-stream one.
    """
    cells = cells[cells.forced_accept_length.isna()]  # what an engine pretends is served to nobody
    good = summarise.keyed(results.ok(cells)).assign(status="ok")
    every = pd.concat([good, summarise.pooled(cells).assign(status="ok")], ignore_index=True) if len(good) else good
    summary = summarise.summarise(cells, requests, level, seed, with_pooled=True)
    uses, by_workload = {}, []
    for use in USES:
        if use == "goodput" and goodput.COLUMN not in cells:
            continue  # the profile sets no limits
        for workload in [*sorted(set(cells.workload)), "all"]:
            pool, part = every[every.workload == workload], summary[summary.workload == workload]
            chosen = _choose(pool, part, requests, use, level, seed)
            if workload == "all":
                uses[use] = chosen
            elif chosen:
                by_workload.append({"use": use, "workload": workload, **chosen})
    points = []
    for row in step_cost.step_costs(cells, requests, level, seed).to_dict("records"):
        ratio = Interval(row["speed_up"], row["speed_up_lo"], row["speed_up_hi"], int(row["n_repeats"]), row["unit"])
        row["pays"] = pays(ratio, margin) if pd.notna(ratio.point) else format.NOT_MEASURED
        fallback = row["configuration"] in eager
        points.append(row | {"kind": kind(row, fallback), "cause": cause(row, fallback), "flip": flip(row)})
    winner = uses["throughput"] or uses["single_stream"]
    missing = statuses[statuses.status == format.NOT_MEASURED]
    units = sorted(set(summary.unit) - {intervals.NOTHING})
    return _plain(
        {
            "schema_version": SCHEMA_VERSION,
            "profile": profile,
            "simulated": "simulated" in cells and bool(cells.simulated.isin([True]).any()),
            "level": level,
            "margin": margin,
            "unit": " / ".join(units) or intervals.NOTHING,
            "serve": winner["configuration"] if winner else None,
            "uses": uses,
            "by_workload": by_workload,
            "points": points,
            "not_measured": missing[["configuration", "reason"]].to_dict("records"),
            "void_cells": int((cells.status != "ok").sum()),
        }
    )


def _plain(value):
    """JSON's own types, numbers to six figures, NaN as null: the file's diff shows changes, not noise."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, bool | str):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return value
    if pd.isna(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.6g}")


def of(runs_root: str | Path, profile: str) -> dict:
    """`decide` on the ledgers of a profile, with the profile's own margin."""
    found = load.load_if_known(profile)
    margin = found.practical_margin if found else MARGIN
    requests = results.requests(runs_root, profile)
    limits = found.workload.latency_limits if found else None
    cells = goodput.attach(results.cells(runs_root, profile), requests, limits)
    statuses = results.statuses(runs_root, profile)
    return decide(cells, requests, statuses, profile, margin, eager=results.eager(runs_root, profile))


def costs(verdict: dict) -> pd.DataFrame:
    """The points of a verdict as the frame that `breakeven.step_costs` gave."""
    frame = pd.DataFrame(verdict["points"], columns=step_cost.COLUMNS)
    words = ("configuration", "engine", "method", "base", "workload", "unit", "paired")
    numbers = [c for c in step_cost.COLUMNS if c not in words]
    return frame.assign(**{c: pd.to_numeric(frame[c]) for c in numbers})
