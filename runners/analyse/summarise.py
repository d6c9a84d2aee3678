"""Averages with intervals: bootstrap over repeats, or over the requests of a run when repeats are too few.

The resampling unit is a repeat (one whole cell) when a point has at least three of them, because requests of
one run share its luck. With fewer, requests within the run are resampled and the result says `within_run`:
such an interval does not hold the variation from run to run and is too narrow by an unknown amount.
"""

import numpy as np
import pandas as pd
from scipy import stats

from runners.analyse import acceptance, machines, results
from runners.analyse.intervals import (
    LEVEL,
    NOTHING,
    REPEATS,
    RESAMPLES,
    SEED,
    WITHIN_RUN,
    Interval,
    bootstrap,
    expanded,
    interval,
    nothing,
)

MIN_REPEATS = 3
TIMES = ("ttft_ms", "tpot_ms")  # of METRICS: more is slower
POINT = ["workload", "concurrency"]

# name -> (cell column, column of `request_metrics`, statistic over requests, how workloads combine in the pool)
METRICS = {
    "throughput": ("output_tokens_per_second", "duration_s", np.mean, np.mean),
    "stream": ("stream_tokens_per_second_p50", "stream", np.median, stats.hmean),
    "ttft_ms": ("ttft_ms_p50", "ttft_ms", np.median, np.mean),
    "tpot_ms": ("tpot_ms_p50", "tpot_ms", np.median, np.mean),
    # Of a cell alone (goodput.attach): a request is within the limits or not, which leaves nothing to resample in one.
    "goodput": ("goodput_tokens_per_second", None, None, None),
}


def request_metrics(requests: pd.DataFrame) -> pd.DataFrame:
    """Per request: duration_s, stream (decode tokens/s), ttft_ms, tpot_ms; the first token belongs to the
    prefill. What it has made before is given back as it is: a caller with many points derives them once.
    """
    if "decode_s" in requests:
        return requests
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
    """Cells with `keys`, the ledger keys behind each row and their workloads: one for a cell, several if pooled."""
    if "keys" in cells:
        return cells
    return cells.assign(keys=[{key: workload} for key, workload in zip(cells.key, cells.workload, strict=True)])


def _requests_of(rows: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """The requests behind some rows, with the workload of each: the stratum it is resampled in."""
    workloads = {key: workload for keys in rows["keys"] for key, workload in keys.items()}
    own = metrics[metrics.key.isin(list(workloads))]
    return own.assign(workload=own.key.map(workloads))


def _within_run(
    sides: list[pd.DataFrame], name: str, level: float, seed: int, paired: bool
) -> tuple[float, float, int] | None:
    """Bounds, relative to the point, of a metric (one side) or of a ratio of two, by resampling requests.

    Each workload is resampled for itself: how many requests of each there are is the plan's choice, not chance. In a
    closed loop throughput is C requests per mean duration (Little's law), so its relative interval is that of the
    mean duration, turned round. None when a workload has fewer than two requests.
    """
    _, column, statistic, combine = METRICS[name]
    if column is None:
        return None
    rng = np.random.default_rng(seed)
    resampled, raw, smallest = [[] for _ in sides], [[] for _ in sides], []
    for workload in sorted({w for side in sides for w in side.workload}):
        own = [side[side.workload == workload].groupby("prompt_id")[column].mean().dropna() for side in sides]
        if paired:
            own = list(own[0].align(own[-1], join="inner"))[: len(sides)]
        if min(map(len, own)) < 2:
            return None
        smallest.append(min(map(len, own)))
        draw = rng.integers(0, len(own[0]), (RESAMPLES, len(own[0])))
        for i, values in enumerate(v.to_numpy() for v in own):
            index = draw if paired or not i else rng.integers(0, len(values), (RESAMPLES, len(values)))
            resampled[i].append(statistic(values[index], axis=1))
            raw[i].append(statistic(values))
    if not smallest:
        return None
    relative = [combine(np.array(r), axis=0) / combine(np.array(w)) for r, w in zip(resampled, raw, strict=True)]
    ratio = relative[0] / relative[1] if len(relative) > 1 else relative[0]
    ratio = 1 / ratio if name == "throughput" else ratio
    tail = (1 - expanded(level, min(smallest))) / 2
    lo, hi = np.quantile(ratio, [tail, 1 - tail])
    return float(lo), float(hi), min(smallest)


def pooled(cells: pd.DataFrame) -> pd.DataFrame:
    """All workloads of a (configuration, concurrency, repeat) as one row, workload "all"; ok cells only.

    Throughput is all tokens over all seconds, the rate of doing every workload's tokens once; per-stream
    speed is the harmonic mean for the same reason. A row needs every workload of the ledger: a point with a
    void cell has no pooled row.
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
    column = METRICS["goodput"][0]
    return {column: float((group[column] * group.seconds).sum() / seconds)} if column in group else {}


def _estimate(rows: pd.DataFrame, metrics: pd.DataFrame, name: str, level: float, seed: int) -> Interval:
    column = METRICS[name][0]
    if column not in rows:
        return nothing()
    values = rows[column].dropna()
    if len(values) >= MIN_REPEATS or values.empty:
        return interval(values, level, seed)
    point = float(values.mean())
    found = _within_run([_requests_of(rows, metrics)], name, level, seed, False)
    if found is None:
        return Interval(point, np.nan, np.nan, len(values), NOTHING)
    return Interval(point, point * found[0], point * found[1], found[2], WITHIN_RUN)


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
        good = results.ok(group)
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
    return results.ordered(frame, POINT) if len(frame) else frame


def _same_prompts(of_key: dict[str, set], a: dict[str, str], b: dict[str, str]) -> bool:
    prompts = [set().union(*(of_key.get(key, ()) for key in keys)) for keys in (a, b)]
    return bool(prompts[0]) and prompts[0] == prompts[1]


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

    Paired by repeat when both answered the same prompts: repeats are interleaved, so a pair shares its prompts
    and its round's drift. Below three repeats, paired by prompt within the run. The bounds hold what the machine's own
    speed differed by (machine_speed.drift). Void cells are ignored; NaN when one side has none.
    """
    found = _ratio_as_measured(upper, lower, requests, metric, level, seed)
    drift = machines.speed_drift(*(results.ok(side) for side in (upper, lower)))
    return found.widened(drift if metric in TIMES else 1 / drift)


def _ratio_as_measured(upper, lower, requests, metric: str, level: float, seed: int) -> Interval:
    column = METRICS[metric][0]
    if column not in upper or column not in lower:
        return nothing()
    a, b = (keyed(results.ok(side)).dropna(subset=[column]) for side in (upper, lower))
    if a.empty or b.empty or (a[column] <= 0).any() or (b[column] <= 0).any():
        return nothing()  # a goodput of nothing has no ratio
    metrics = request_metrics(requests)
    used = ["repeat", "keys", column]  # a join of all columns, dozens of points long, was half of a report's analysis
    pairs = a[used].merge(b[used], on="repeat", suffixes=("_a", "_b"))
    of_key = metrics.groupby("key")["prompt_id"].agg(set).to_dict()
    same = [_same_prompts(of_key, own, base) for own, base in zip(pairs["keys_a"], pairs["keys_b"], strict=True)]
    if sum(same) >= MIN_REPEATS:
        logs = np.log(pairs[f"{column}_a"].astype(float) / pairs[f"{column}_b"].astype(float))
        found = interval(logs[same], level, seed).map(np.exp)
        return Interval(found.point, found.lo, found.hi, found.n, REPEATS, True)
    x, y = np.log(a[column].astype(float).to_numpy()), np.log(b[column].astype(float).to_numpy())
    point = float(np.exp(x.mean() - y.mean()))
    if min(len(x), len(y)) >= MIN_REPEATS:
        lo, hi = bootstrap((x, y), lambda p, q, axis: p.mean(axis) - q.mean(axis), level, seed, False)
        return Interval(point, np.exp(lo), np.exp(hi), min(len(x), len(y)), REPEATS)
    paired = bool(same) and all(same) and len(pairs) == len(a) == len(b)
    found = _within_run([_requests_of(side, metrics) for side in (a, b)], metric, level, seed, paired)
    if found is None:
        return Interval(point, np.nan, np.nan, min(len(x), len(y)), NOTHING)
    return Interval(point, point * found[0], point * found[1], found[2], WITHIN_RUN, paired)
