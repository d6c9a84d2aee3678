"""Goodput: tokens a second of the answers that meet a latency target; throughput alone can hide slow answers.

A request meets the target when its time to first token and its time per output token both stay within the profile's
limits (workload.latency_limits). Goodput is the output tokens of such requests over the cell's seconds.
"""

import pandas as pd

from runners.analyse import results, summarise
from runners.analyse.metrics import request_metrics
from runners.profiles.latency import LatencyLimits

COLUMNS = ["configuration", "engine", "method", "workload", "concurrency", "goodput", "goodput_lo", "goodput_hi"]
COLUMNS += ["met", "throughput", "n_repeats"]
COLUMN = "goodput_tokens_per_second"


def attach(cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits | None) -> pd.DataFrame:
    """Cells with COLUMN (tokens/s; NaN for void cells); unchanged where the profile sets no limits."""
    if limits is None or cells.empty:
        return cells
    return _with(cells, of_cells(cells, requests, limits))


def _with(cells: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    return cells.assign(**{COLUMN: cells.key.map(measured.set_index("key")["goodput"])})


def of_cells(cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits) -> pd.DataFrame:
    """Ok cells that have requests, with `goodput` (tokens/s) and `met` (share of requests within the limits)."""
    metrics = request_metrics(requests).merge(
        requests[["key", "prompt_id", "output_tokens"]].drop_duplicates(["key", "prompt_id"]), on=["key", "prompt_id"]
    )
    met = (metrics.ttft_ms <= limits.ttft_ms) & (metrics.tpot_ms <= limits.tpot_ms)
    by_key = metrics.assign(met=met, good=metrics.output_tokens.where(met, 0)).groupby("key")
    sums = by_key.agg(met=("met", "mean"), good=("good", "sum")).reset_index()
    good = results.ok(cells).merge(sums, on="key")
    return good.assign(goodput=good.good / good.seconds)


def table(cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits) -> pd.DataFrame:
    """One row a (configuration, workload, concurrency): COLUMNS; rates in tokens/s, met a share of requests."""
    measured = of_cells(cells, requests, limits)
    met = measured.groupby(COLUMNS[:5])["met"].mean().reset_index()
    return summarise.summarise(_with(cells, measured)).merge(met, on=COLUMNS[:5])[COLUMNS]


def best(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows of `table` with the highest goodput of each workload; empty where none meets the limits."""
    some = measured[measured.goodput > 0].sort_values("goodput", ascending=False, kind="stable")
    return some.drop_duplicates("workload").sort_values("workload")
