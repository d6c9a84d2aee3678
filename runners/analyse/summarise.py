"""Averages over cells and ratios of them, with intervals.

The resampling unit is a repeat (one whole cell) when a point has at least three of them, because requests of one run
share its luck. With fewer, requests within the run are resampled (metrics.py) and the result says `within_run`: such
an interval does not hold the variation from run to run and is too narrow by an unknown amount.
"""

import numpy as np
import pandas as pd
from scipy import stats

from runners.analyse import acceptance, machines, results
from runners.analyse.intervals import LEVEL, NOTHING, REPEATS, SEED, WITHIN_RUN, Interval, bootstrap, interval, nothing
from runners.analyse.metrics import (
    METRICS,
    RelativeBounds,
    metric_within_run,
    ratio_within_run,
    request_metrics,
    requests_behind,
)

MIN_REPEATS = 3
POINT = ["workload", "concurrency"]
NAMES = ["configuration", "engine", "method", *POINT]


def keyed(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells with `keys`, the ledger keys behind each row and their workloads: one for a cell, several if pooled."""
    if "keys" in cells:
        return cells
    return cells.assign(keys=[{key: workload} for key, workload in zip(cells.key, cells.workload, strict=True)])


def pooled(cells: pd.DataFrame) -> pd.DataFrame:
    """All workloads of a (configuration, concurrency, repeat) as one row, workload "all", with the columns of `keyed`.

    Ok cells only. Throughput is all tokens over all seconds, the rate of doing every workload's tokens once; per-stream
    speed is the harmonic mean for the same reason. A row needs every workload of the ledger: a point with a void cell
    has no pooled row.
    """
    good, wanted = keyed(results.ok(cells)), cells.workload.nunique()
    rows = []
    by = ["configuration", "engine", "method", "concurrency", "repeat"]
    for names, group in good.groupby(by, sort=False):
        if group.workload.nunique() < wanted:
            continue
        totals = ["requests", "output_tokens", "seconds", "steps", "drafted", "accepted"]
        summed = group[totals].sum(min_count=len(group)).to_dict()
        rows.append(
            group.iloc[0].to_dict()
            | dict(zip(by, names, strict=True))
            | summed
            | {
                "workload": "all",
                "output_tokens_per_second": summed["output_tokens"] / summed["seconds"],
                **_pooled_goodput(group, summed["seconds"]),
                "stream_tokens_per_second_p50": float(stats.hmean(group.stream_tokens_per_second_p50.astype(float))),
                "ttft_ms_p50": group.ttft_ms_p50.mean(),
                "tpot_ms_p50": group.tpot_ms_p50.mean(),
                "capped_at": group.capped_at.min(),
                "running_peak": group.running_peak.astype(float).min(),
                "machine_gflops": group.machine_gflops.astype(float).mean(),
                "accepted_per_position": acceptance.add_positions(list(group.accepted_per_position)),
                "keys": {key: workload for keys in group["keys"] for key, workload in keys.items()},
            }
        )
    return pd.DataFrame(rows, columns=list(good.columns))


def _pooled_goodput(group: pd.DataFrame, seconds: float) -> dict[str, float]:
    """Tokens within the limits over all seconds; empty where no limits are set."""
    column = METRICS["goodput"].column
    return {column: float((group[column] * group.seconds).sum() / seconds)} if column in group else {}


def _around(point: float, bounds: RelativeBounds | None, n: int, paired: bool = False) -> Interval:
    """The interval of bounds relative to a point; without them the point alone, of n values."""
    if bounds is None:
        return Interval(point, np.nan, np.nan, n, NOTHING)
    return Interval(point, point * bounds.lo, point * bounds.hi, bounds.n, WITHIN_RUN, paired)


def _mean(rows: pd.DataFrame, metrics: pd.DataFrame, name: str, level: float, seed: int) -> Interval:
    """The mean of a metric over the repeats of one point."""
    column = METRICS[name].column
    if column not in rows:
        return nothing()
    values = rows[column].dropna()
    if len(values) >= MIN_REPEATS or values.empty:
        return interval(values, level, seed)
    bounds = metric_within_run(requests_behind(rows, metrics), name, level, seed)
    return _around(float(values.mean()), bounds, len(values))


def summarise(
    cells: pd.DataFrame,
    requests: pd.DataFrame,
    level: float = LEVEL,
    seed: int = SEED,
    with_pooled: bool = False,
) -> pd.DataFrame:
    """One row per (configuration, workload, concurrency): NAMES, k, n_repeats, n_void, unit, capped_at, and each of
    METRICS with `_lo` and `_hi`.

    throughput, stream and goodput in tokens/s, ttft_ms and tpot_ms in ms; a figure is the mean over repeats, each of
    which is a rate or a median over requests. unit: what was resampled. Void cells are in n_void and in no figure.
    `with_pooled` adds workload "all".
    """
    metrics = request_metrics(requests)
    every = keyed(cells)
    if with_pooled and len(cells):
        every = pd.concat([every, pooled(cells).assign(status="ok")], ignore_index=True)
    rows = []
    for names, group in every.groupby(NAMES, sort=False):
        good = results.ok(group)
        means = {m: _mean(good, metrics, m, level, seed) for m in METRICS}
        row = dict(zip(NAMES, names, strict=True))
        row |= {"k": group.k.max(), "n_repeats": len(good), "n_void": len(group) - len(good)}
        row |= {"unit": means["throughput"].unit if len(good) else NOTHING, "capped_at": good.capped_at.min()}
        for m, value in means.items():
            row |= {m: value.point, f"{m}_lo": value.lo, f"{m}_hi": value.hi}
        rows.append(row)
    bounds = [f"{m}{end}" for m in METRICS for end in ("", "_lo", "_hi")]
    columns = [*NAMES[:3], "k", *POINT, "n_repeats", "n_void", "unit", "capped_at", *bounds]
    frame = pd.DataFrame(rows, columns=columns)
    return results.ordered(frame, POINT) if len(frame) else frame


def ratio_of(
    upper: pd.DataFrame,
    lower: pd.DataFrame,
    requests: pd.DataFrame,
    metric: str = "throughput",
    level: float = LEVEL,
    seed: int = SEED,
) -> Interval:
    """Ratio of two sets of cells (each one configuration at one point) in `metric`, geometric mean over repeats.

    Paired by repeat when both answered the same prompts: repeats are interleaved, so a pair shares its prompts and its
    round's drift. Below three repeats, paired by prompt within the run. The bounds also hold the ratio after correction
    for the machine's own speed (machines.speed_drift). Void cells are ignored; NaN when one side has none.
    """
    measured = _ratio_as_measured(upper, lower, requests, metric, level, seed)
    drift = machines.speed_drift(*(results.ok(side) for side in (upper, lower)))
    return measured.widened(drift if METRICS[metric].slower_is_more else 1 / drift)


def _ratio_as_measured(upper, lower, requests, metric: str, level: float, seed: int) -> Interval:
    """`ratio_of` before the machine's drift: over pairs of repeats, over both sides' repeats, or within the run."""
    column = METRICS[metric].column
    if column not in upper or column not in lower:
        return nothing()
    a, b = (keyed(results.ok(side)).dropna(subset=[column]) for side in (upper, lower))
    if a.empty or b.empty or (a[column] <= 0).any() or (b[column] <= 0).any():
        return nothing()  # a goodput of 0 has no ratio
    metrics = request_metrics(requests)
    used = ["repeat", "keys", column]  # a join of all columns, dozens of points long, was half of a report's analysis
    pairs = a[used].merge(b[used], on="repeat", suffixes=("_a", "_b"))
    same = _same_prompts(pairs, metrics)
    if sum(same) >= MIN_REPEATS:
        logs = np.log(pairs[f"{column}_a"].astype(float) / pairs[f"{column}_b"].astype(float))
        over_pairs = interval(logs[same], level, seed).map(np.exp)
        return Interval(over_pairs.point, over_pairs.lo, over_pairs.hi, over_pairs.n, REPEATS, True)
    x, y = np.log(a[column].astype(float).to_numpy()), np.log(b[column].astype(float).to_numpy())
    point, fewest = float(np.exp(x.mean() - y.mean())), min(len(x), len(y))
    if fewest >= MIN_REPEATS:
        lo, hi = bootstrap((x, y), lambda p, q, axis: p.mean(axis) - q.mean(axis), level, seed, False)
        return Interval(point, np.exp(lo), np.exp(hi), fewest, REPEATS)
    paired = bool(same) and all(same) and len(pairs) == len(a) == len(b)
    bounds = ratio_within_run(requests_behind(a, metrics), requests_behind(b, metrics), metric, level, seed, paired)
    return _around(point, bounds, fewest, paired)


def _same_prompts(pairs: pd.DataFrame, metrics: pd.DataFrame) -> list[bool]:
    """For each pair of repeats (keys_a, keys_b): whether both sides answered the same prompts."""
    of_key = metrics.groupby("key")["prompt_id"].agg(set).to_dict()

    def prompts(keys: dict[str, str]) -> set[str]:
        return set().union(*(of_key.get(key, ()) for key in keys))

    both = [(prompts(a), prompts(b)) for a, b in zip(pairs["keys_a"], pairs["keys_b"], strict=True)]
    return [bool(a) and a == b for a, b in both]
