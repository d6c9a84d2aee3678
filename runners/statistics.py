"""Averages with intervals: bootstrap over repeats, or over the requests of a run when repeats are too few.

The resampling unit is a repeat (one whole cell) when a point has at least three of them, because requests of
one run share its luck. With fewer, requests within the run are resampled and the result says `within_run`:
such an interval does not hold the variation from run to run and is too narrow by an unknown amount.
"""

import numpy as np
import pandas as pd
from scipy import stats

from runners import tables
from runners.intervals import (
    LEVEL,
    NOTHING,
    REPEATS,
    SEED,
    WITHIN_RUN,
    Interval,
    bootstrap,
    interval,
    nothing,
    written,
)

MIN_REPEATS = 3
POINT = ["workload", "concurrency"]

# name -> (cell column, column of `request_metrics`, statistic over requests)
METRICS = {
    "throughput": ("output_tokens_per_second", "duration_s", np.mean),
    "stream": ("stream_tokens_per_second_p50", "stream", np.median),
    "ttft_ms": ("ttft_ms_p50", "ttft_ms", np.median),
    "tpot_ms": ("tpot_ms_p50", "tpot_ms", np.median),
}


def request_metrics(requests: pd.DataFrame) -> pd.DataFrame:
    """Per request: duration_s, stream (decode tokens/s), ttft_ms, tpot_ms; the first token belongs to the
    prefill.
    """
    frame = requests[requests.error.isna()] if "error" in requests else requests
    decode_s = (frame.last_token_s - frame.first_token_s).astype(float)
    decode_tokens = (frame.output_tokens - 1).astype(float)
    usable = (decode_s > 0) & (decode_tokens > 0)
    return frame[["key", "prompt_id"]].assign(
        duration_s=(frame.last_token_s - frame.sent_s).astype(float),
        stream=(decode_tokens / decode_s).where(usable),
        ttft_ms=1000 * (frame.first_token_s - frame.sent_s).astype(float),
        tpot_ms=(1000 * decode_s / decode_tokens).where(usable),
        decode_s=decode_s.where(usable),
        decode_tokens=decode_tokens.where(usable),
    )


def keyed(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells with `keys`, the ledger keys behind each row: one for a cell, several for a pooled row."""
    return cells if "keys" in cells else cells.assign(keys=[[k] for k in cells.key])


def _requests_of(rows: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    return metrics[metrics.key.isin({k for keys in rows["keys"] for k in keys})]


def pooled(cells: pd.DataFrame) -> pd.DataFrame:
    """All workloads of a (configuration, concurrency, repeat) as one row, workload "all"; ok cells only.

    Throughput is all tokens over all seconds, the rate of doing every workload's tokens once; per-stream
    speed is the harmonic mean for the same reason. A row needs every workload of the ledger: a point with a
    void cell has no pooled row.
    """
    good, wanted = keyed(tables.ok(cells)), cells.workload.nunique()
    rows = []
    by = ["configuration", "engine", "method", "concurrency", "repeat"]
    for names, group in good.groupby(by, sort=False):
        if group.workload.nunique() < wanted:
            continue
        summed = {
            c: group[c].sum(min_count=1)
            for c in ("requests", "output_tokens", "seconds", "steps", "drafted", "accepted")
        }
        rows.append(
            group.iloc[0].to_dict()
            | dict(zip(by, names, strict=True))
            | summed
            | {
                "workload": "all",
                "output_tokens_per_second": summed["output_tokens"] / summed["seconds"],
                "stream_tokens_per_second_p50": float(stats.hmean(group.stream_tokens_per_second_p50.astype(float))),
                "ttft_ms_p50": group.ttft_ms_p50.mean(),
                "tpot_ms_p50": group.tpot_ms_p50.mean(),
                "capped_at": group.capped_at.min(),
                "accepted_per_position": None,
                "keys": [k for keys in group["keys"] for k in keys],
            }
        )
    return pd.DataFrame(rows, columns=list(good.columns))


def _estimate(rows: pd.DataFrame, metrics: pd.DataFrame, name: str, level: float, seed: int) -> Interval:
    column, per_request, statistic = METRICS[name]
    values = rows[column].dropna()
    if len(values) >= MIN_REPEATS or values.empty:
        return interval(values, level, seed)
    point = float(values.mean())
    own = _requests_of(rows, metrics)[per_request].dropna()
    if len(own) < 2:
        return Interval(point, np.nan, np.nan, len(values), NOTHING)
    found = interval(own, level, seed, statistic, within_run=True)
    if name == "throughput":
        # In a closed loop throughput is C requests per mean duration (Little's law), so its relative interval
        # is that of the mean duration, turned round.
        return found.map(lambda d: point * found.point / d)
    return Interval(point, found.lo, found.hi, found.n, WITHIN_RUN)


def summarise(
    cells: pd.DataFrame,
    requests: pd.DataFrame,
    level: float = LEVEL,
    seed: int = SEED,
    with_pooled: bool = False,
) -> pd.DataFrame:
    """One row per (configuration, workload, concurrency): each of METRICS with `_lo` and `_hi`, n_repeats,
    n_void, unit.

    throughput and stream in tokens/s, ttft_ms and tpot_ms in ms; a figure is the mean over repeats, each of
    which is a rate or a median over requests. Void cells are in n_void and in no figure. `with_pooled` adds
    workload "all".
    """
    metrics = request_metrics(requests)
    every = keyed(cells)
    if with_pooled and len(cells):
        every = pd.concat([every, pooled(cells).assign(status="ok")], ignore_index=True)
    rows = []
    for names, group in every.groupby(["configuration", "engine", "method", *POINT], sort=False):
        good = tables.ok(group)
        found = {m: _estimate(good, metrics, m, level, seed) for m in METRICS}
        row = dict(zip(["configuration", "engine", "method", *POINT], names, strict=True))
        row |= {"k": group.k.max(), "n_repeats": len(good), "n_void": len(group) - len(good)}
        row |= {"unit": found["throughput"].unit if len(good) else NOTHING, "capped_at": good.capped_at.min()}
        for m, value in found.items():
            row |= {m: value.point, f"{m}_lo": value.lo, f"{m}_hi": value.hi}
        rows.append(row)
    bounds = [f"{m}{end}" for m in METRICS for end in ("", "_lo", "_hi")]
    columns = [
        "configuration",
        "engine",
        "method",
        "k",
        *POINT,
        "n_repeats",
        "n_void",
        "unit",
        "capped_at",
        *bounds,
    ]
    frame = pd.DataFrame(rows, columns=columns)
    return tables.ordered(frame, POINT) if len(frame) else frame


def table(summary: pd.DataFrame, workload: str) -> pd.DataFrame:
    """`summarise` for reading, one workload; a point that has only void cells says "void"."""
    rows = summary[summary.workload == workload]
    shown = {"configuration": rows.configuration, "C": rows.concurrency}
    titles = {
        "throughput": "output tok/s, all",
        "stream": "tok/s per stream",
        "ttft_ms": "TTFT, ms",
        "tpot_ms": "TPOT, ms",
    }
    for metric, title in titles.items():
        triples = rows[[metric, f"{metric}_lo", f"{metric}_hi"]].itertuples(index=False)
        shown[title] = ["void" if pd.isna(t[0]) else written(*t, 1) for t in triples]
    return pd.DataFrame(shown | {"repeats": rows.n_repeats, "void": rows.n_void}).reset_index(drop=True)


def gates_table(cells: pd.DataFrame) -> pd.DataFrame:
    """What the gates looked at, per configuration over its ok cells: a mean, or the worst value."""
    looked = {
        "equal_prefix_share": ("equal to base output", "mean", 2),
        "reference_share": ("equal to reference output", "mean", 2),
        "distinct_bigram_ratio": ("distinct bigrams (least)", "min", 2),
        "neighbour_cores": ("cores of other work (most)", "max", 2),
        "steal_share": ("CPU steal (most)", "max", 3),
        "client_cpu_us_per_token": ("client CPU, us per token", "mean", 0),
    }
    rows = []
    for name, group in tables.ok(cells).groupby("configuration", sort=False):
        row = {"configuration": name, "ok cells": len(group)}
        for column, (title, how, digits) in looked.items():
            value = group[column].astype(float).agg(how)
            row[title] = "-" if pd.isna(value) else f"{value:.{digits}f}"
        rows.append(row)
    return pd.DataFrame(rows, columns=["configuration", "ok cells", *(t for t, _, _ in looked.values())])


def _same_prompts(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    return len(a) > 0 and set(a.prompt_id) == set(b.prompt_id)


def ratio_of(
    upper: pd.DataFrame,
    lower: pd.DataFrame,
    requests: pd.DataFrame,
    metric: str = "throughput",
    level: float = LEVEL,
    seed: int = SEED,
) -> Interval:
    """Ratio of two sets of cells (each one configuration at one point) in `metric`, geometric mean over
    repeats.

    Paired by repeat when both answered the same prompts: repeats are interleaved, so a pair shares its
    round's drift. Below three repeats, paired by prompt within the run. Void cells are ignored; NaN when one
    side has none.
    """
    column, per_request, statistic = METRICS[metric]
    a, b = (keyed(tables.ok(side)).dropna(subset=[column]) for side in (upper, lower))
    if a.empty or b.empty:
        return nothing()
    metrics = request_metrics(requests)
    ra, rb = _requests_of(a, metrics), _requests_of(b, metrics)
    same = _same_prompts(ra, rb)
    pairs = a.merge(b, on="repeat", suffixes=("_a", "_b"))
    if same and len(pairs) >= MIN_REPEATS:
        logs = np.log(pairs[f"{column}_a"].astype(float) / pairs[f"{column}_b"].astype(float))
        found = interval(logs, level, seed).map(np.exp)
        return Interval(found.point, found.lo, found.hi, found.n, REPEATS, True)
    x, y = np.log(a[column].astype(float).to_numpy()), np.log(b[column].astype(float).to_numpy())
    point = float(np.exp(x.mean() - y.mean()))
    if min(len(x), len(y)) >= MIN_REPEATS:
        lo, hi = bootstrap((x, y), lambda p, q, axis: p.mean(axis) - q.mean(axis), level, seed, False)
        return Interval(point, np.exp(lo), np.exp(hi), min(len(x), len(y)), REPEATS)
    u, v = (side.groupby("prompt_id")[per_request].mean().dropna() for side in (ra, rb))
    if same:
        u, v = u.align(v, join="inner")
    if min(len(u), len(v)) < 2:
        return Interval(point, np.nan, np.nan, min(len(x), len(y)), NOTHING)
    if metric == "throughput":  # Little's law again: the ratio of throughputs is that of mean durations, turned round
        u, v = v, u
    raw = float(statistic(u) / statistic(v))
    lo, hi = bootstrap(
        (u.to_numpy(), v.to_numpy()),
        lambda p, q, axis: statistic(p, axis=axis) / statistic(q, axis=axis),
        level,
        seed,
        same,
    )
    return Interval(point, lo * point / raw, hi * point / raw, min(len(u), len(v)), WITHIN_RUN, same)


def ratio_interval(
    cells: pd.DataFrame,
    requests: pd.DataFrame,
    configuration: str,
    workload: str,
    concurrency: int,
    metric: str = "throughput",
    level: float = LEVEL,
    seed: int = SEED,
) -> Interval:
    """`configuration` over its engine's base at one point; NaN when either was not measured or the engine has
    no base.
    """
    at = cells[(cells.workload == workload) & (cells.concurrency == concurrency)]
    own = at[at.configuration == configuration]
    base = tables.base_of(cells, own.engine.iloc[0]) if len(own) else None
    return ratio_of(own, at[at.configuration == base], requests, metric, level, seed) if base else nothing()
