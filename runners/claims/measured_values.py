"""Named values of what was measured: speeds, step costs and forecasts of a profile's runs."""

from pathlib import Path

import pandas as pd

from runners.analyse import crossover, forecasts, results, step_cost, summarise, sweeps
from runners.claims.value_names import point

STEP_COSTS = [
    *("tokens_per_step", "step_cost", "step_cost_lo", "step_cost_hi", "speed_up", "speed_up_lo", "speed_up_hi"),
    *("decode_speed_up", "decode_speed_up_lo", "decode_speed_up_hi", "stream_speed_up", "stream_speed_up_lo"),
    *("stream_speed_up_hi", "drafted", "accepted", "ceiling"),
]
SPEEDS = ["throughput", "stream", "ttft_ms", "tpot_ms"]


def of_points(cells: pd.DataFrame, requests: pd.DataFrame, prefix: str) -> dict[str, float]:
    """<prefix>.<configuration>.<workload>.c<C>.<figure> of every point with a good cell; missing figures are left out.

    cells, requests: as analyse.results reads them. Figures: STEP_COSTS, and each of SPEEDS with its interval (`_lo`,
    `_hi`).
    """
    if cells.empty:
        return {}
    rows = [(r, STEP_COSTS) for r in step_cost.step_costs(cells, requests).to_dict("records")]
    speeds = [f"{name}{end}" for name in SPEEDS for end in ("", "_lo", "_hi")]
    rows += [(r, speeds) for r in summarise.summarise(cells, with_pooled=True).to_dict("records")]
    found: dict[str, float] = {}
    for r, names in rows:
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


def of_forecasts(runs: str | Path, profile: str) -> dict[str, float]:
    """run.forecast.*: the errors of forecasts that were made on this machine, before their points were measured.

    Only of points that the model had not seen.
    """
    new = forecasts.of_new_points(runs, profile, sweeps.profile_of(profile))
    if new.empty:
        return {}
    median, worst = crossover.errors(new)
    return {"run.forecast.points": float(len(new)), "run.forecast.median": median, "run.forecast.worst": worst}
