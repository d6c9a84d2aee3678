"""The verdict: what to serve for each use, whether speculation pays there and why; data, tables, a file."""

import json
import os
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from runners import breakeven, goodput, inputs, intervals, statistics, tables
from runners.errors import UserError
from runners.intervals import LEVEL, SEED, Interval
from runners.reasons import MARGIN, NO, NONE, UNDECIDED, YES, cause, flip, kind, pays

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
        ratio = statistics.ratio_of(cells_of(first), cells_of(second), requests, metric, level, seed)
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
    good = statistics.keyed(tables.ok(cells)).assign(status="ok")
    every = pd.concat([good, statistics.pooled(cells).assign(status="ok")], ignore_index=True) if len(good) else good
    summary = statistics.summarise(cells, requests, level, seed, with_pooled=True)
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
    for row in breakeven.step_costs(cells, requests, level, seed).to_dict("records"):
        ratio = Interval(row["speed_up"], row["speed_up_lo"], row["speed_up_hi"], int(row["n_repeats"]), row["unit"])
        row["pays"] = pays(ratio, margin) if pd.notna(ratio.point) else tables.NOT_MEASURED
        fallback = row["configuration"] in eager
        points.append(row | {"kind": kind(row, fallback), "cause": cause(row, fallback), "flip": flip(row)})
    winner = uses["throughput"] or uses["single_stream"]
    missing = statuses[statuses.status == tables.NOT_MEASURED]
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
    found = tables.plan(profile)
    margin = found.practical_margin if found else MARGIN
    requests = tables.requests(runs_root, profile)
    limits = found.workload.latency_limits if found else None
    cells = goodput.attach(tables.cells(runs_root, profile), requests, limits)
    statuses = tables.statuses(runs_root, profile)
    return decide(cells, requests, statuses, profile, margin, eager=tables.eager(runs_root, profile))


def write(runs_root: str | Path, profile: str) -> dict:
    """Decide and write <runs>/<profile>/verdict.json, whole or not at all; returns the verdict."""
    verdict = of(runs_root, profile)
    path = place(runs_root, profile)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(verdict, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(part, path)
    return verdict


def place(runs_root: str | Path, profile: str) -> Path:
    return tables.home(runs_root, profile) / "verdict.json"


def load(runs_root: str | Path, profile: str) -> dict:
    """The verdict that `write` left; UserError when there is none or it cannot be read."""
    path = place(runs_root, profile)
    advice = f"run: make report PROFILE={profile}"
    if not path.is_file():
        raise UserError(f"There is no verdict for profile {profile} yet; {advice}")
    verdict = inputs.read_json(path, dict, advice)
    if verdict.get("schema_version") != SCHEMA_VERSION:
        raise UserError(f"{profile}/verdict.json has another schema_version than {SCHEMA_VERSION}; {advice}")
    if not isinstance(verdict.get("uses"), dict) or not isinstance(verdict.get("points"), list):
        raise UserError(f"{profile}/verdict.json is not whole (no `uses` or `points`); {advice}")
    return verdict


def costs(verdict: dict) -> pd.DataFrame:
    """The points of a verdict as the frame that `breakeven.step_costs` gave."""
    frame = pd.DataFrame(verdict["points"], columns=breakeven.COLUMNS)
    words = ("configuration", "engine", "method", "base", "workload", "unit", "paired")
    numbers = [c for c in breakeven.COLUMNS if c not in words]
    return frame.assign(**{c: pd.to_numeric(frame[c]) for c in numbers})


def figure(triple: list | None, decimals: int = 2) -> str:
    """[point, lo, hi] of a verdict as text; null means not measured."""
    values = [float("nan") if v is None else v for v in triple or [None] * 3]
    return intervals.written(*values, decimals)


def table(verdict: dict) -> pd.DataFrame:
    """What to serve for each use, overall and by workload: for the terminal, the README and the notebook."""
    rows = [{"use": u, "workload": "all", **(found or {})} for u, found in verdict["uses"].items()]
    rows += verdict["by_workload"]
    shown = []
    for row in sorted(rows, key=lambda r: list(USES).index(r["use"])):
        best, second = row.get("configuration"), row.get("runner_up") or {}
        shown.append(
            {
                "use": USES[row["use"]][0],
                "workload": row["workload"],
                "serve": best or ("none meets the limits" if row["use"] == "goodput" else tables.NOT_MEASURED),
                "C": str(row["concurrency"]) if best else "-",
                "tok/s": figure([row["value"], row["lo"], row["hi"]], 1) if best else "-",
                "runner-up": f"{second['configuration']} (C={second['concurrency']})" if second else "-",
                "best / runner-up": figure(row["ratio"]) if second else "-",
                "clear": {True: "yes", False: "no", None: "-"}[row.get("clear")],
            }
        )
    return pd.DataFrame(shown)


def points_table(verdict: dict, workload: str | None = None) -> pd.DataFrame:
    """Does speculation pay, point by point: speed-up over the engine's base, answer, cause."""
    rows = [p for p in verdict["points"] if workload is None or p["workload"] == workload]
    return pd.DataFrame(
        [
            {
                "configuration": p["configuration"],
                "workload": p["workload"],
                "C": p["concurrency"],
                "throughput / base": figure([p["speed_up"], p["speed_up_lo"], p["speed_up_hi"]]),
                "pays": p["pays"],
                "because": p["cause"],
            }
            for p in rows
        ],
        columns=["configuration", "workload", "C", "throughput / base", "pays", "because"],
    )


def flip_table(verdict: dict) -> pd.DataFrame:
    """What would turn each answer, for the pool of workloads."""
    rows = [p for p in verdict["points"] if p["workload"] == "all"]
    return pd.DataFrame(
        [
            {
                "configuration": p["configuration"],
                "C": p["concurrency"],
                "pays": p["pays"],
                "it takes": p["flip"],
            }
            for p in rows
        ],
        columns=["configuration", "C", "pays", "it takes"],
    )


def pays_table(verdict: dict) -> pd.DataFrame:
    """One row a speculative configuration: at how many of its (workload, C) points each answer holds."""
    points = pd.DataFrame(verdict["points"], columns=["configuration", "workload", "concurrency", "pays"])
    points = points[points.workload != "all"]
    rows = []
    for name, group in points.groupby("configuration", sort=False):
        counts = group.pays.value_counts()
        rows.append(
            {
                "configuration": name,
                **{answer: int(counts.get(answer, 0)) for answer in (YES, NO, NONE, UNDECIDED)},
            }
        )
    return pd.DataFrame(rows, columns=["configuration", YES, NO, NONE, UNDECIDED])


def pipe_table(frame: pd.DataFrame) -> str:
    """A DataFrame of short texts as a Markdown table."""
    lines = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def markdown(verdict: dict) -> str:
    """The verdict for a README: best per use, then whether speculation pays, then what is missing."""
    overall = table(verdict)
    text = pipe_table(overall[overall.workload == "all"].drop(columns="workload"))
    if verdict.get("simulated"):
        text = f"**{tables.SIMULATED}**\n\n{text}"
    counts = pays_table(verdict)
    if len(counts):
        text += "\n\nPoints (workload, C) at which speculation pays over the same engine without it:\n\n"
        text += pipe_table(counts)
    for row in verdict["not_measured"]:
        text += f"\n\n`{row['configuration']}`: {tables.NOT_MEASURED} ({row['reason']})."
    return text + "\n"
