"""Named values of what was measured: speeds, step costs and forecasts of a profile's runs."""

import datetime
from pathlib import Path

import pandas as pd

from runners.analyse import crossover, forecasts, results, step_cost, summarise, sweeps
from runners.claims.value_names import point

STEP_COSTS = [
    *("tokens_per_step", "step_cost", "step_cost_lo", "step_cost_hi", "speed_up", "speed_up_lo", "speed_up_hi"),
    *("decode_speed_up", "decode_speed_up_lo", "decode_speed_up_hi", "stream_speed_up", "stream_speed_up_lo"),
    *("stream_speed_up_hi", "drafted", "accepted", "ceiling"),
]
SPEEDS = [f"{name}{end}" for name in ("throughput", "stream", "ttft_ms", "tpot_ms") for end in ("", "_lo", "_hi")]


def step_costs(cells: pd.DataFrame, requests: pd.DataFrame, prefix: str) -> dict[str, float]:
    """<prefix>.<configuration>.<workload>.c<C>.<one of STEP_COSTS> of every point with a good cell that drafts.

    cells, requests: as analyse.results reads them. A figure that is not known is left out.
    """
    return _named(step_cost.step_costs(cells, requests), STEP_COSTS, prefix) if len(cells) else {}


def speeds(cells: pd.DataFrame, prefix: str) -> dict[str, float]:
    """The same for SPEEDS, of every point with a good cell."""
    return _named(summarise.summarise(cells, with_pooled=True), SPEEDS, prefix) if len(cells) else {}


def _named(rows: pd.DataFrame, names: list[str], prefix: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for r in rows.to_dict("records"):
        at = point(prefix, r["configuration"], r["workload"], r["concurrency"])
        found |= {f"{at}.{name}": float(r[name]) for name in names if pd.notna(r[name])}
    return found


def void_points(cells: pd.DataFrame, prefix: str) -> set[str]:
    """Names of the points that were measured and have no good cell.

    A base without a good cell takes every configuration of its engine with it: there is nothing to compare with. The
    pool `all` is void with any of its workloads.
    """
    void: set[str] = set()
    for (configuration, workload, concurrency), group in cells.groupby(["configuration", "workload", "concurrency"]):
        if len(results.ok(group)):
            continue
        affected = {configuration}
        if group.method.iloc[0] == "none":
            affected |= set(cells[cells.engine == group.engine.iloc[0]].configuration)
        void |= {point(prefix, c, w, concurrency) for c in affected for w in (workload, "all")}
    return void


def began(cells: pd.DataFrame) -> pd.Series:
    """When each cell began, as a time with its zone."""
    return pd.to_datetime(cells["started_at"], utc=True, format="ISO8601")


def dates(cells: pd.DataFrame, prefix: str) -> dict[str, datetime.datetime]:
    """<prefix>.<configuration>.<workload>.c<C> -> when the last cell of that point began, the pool `all` included."""
    found: dict[str, datetime.datetime] = {}
    if cells.empty:
        return found
    last = began(cells).groupby([cells.configuration, cells.workload, cells.concurrency]).max()
    for (configuration, workload, concurrency), at in last.items():
        for name in (workload, "all"):
            where = point(prefix, configuration, name, concurrency)
            found[where] = max(at.to_pydatetime(), found.get(where, at.to_pydatetime()))
    return found


def of_forecasts(runs: str | Path, profile: str) -> dict[str, float]:
    """run.forecast.*: the errors of forecasts that were made on this machine, before their points were measured.

    Only of points that the model had not seen.
    """
    new = forecasts.of_new_points(runs, profile, sweeps.profile_of(profile))
    if new.empty:
        return {}
    median, worst = crossover.errors(new)
    return {"run.forecast.points": float(len(new)), "run.forecast.median": median, "run.forecast.worst": worst}
