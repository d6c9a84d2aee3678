"""Averages with intervals: bootstrap over repeats, or over the requests of a run when repeats are too few.

The resampling unit is a repeat (one whole cell) when a point has at least three of them, because requests of one
run share its luck. With fewer, requests within the run are resampled and the result says `within_run`: such an
interval does not hold the variation from run to run and is too narrow by an unknown amount.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from runners import tables

LEVEL = 0.95
SEED = 20_240
RESAMPLES = 4_000
MIN_REPEATS = 3
REPEATS, WITHIN_RUN, NOTHING = "repeats", "requests within the run", "none"
POINT = ["workload", "concurrency"]

# name -> (cell column, column of `request_metrics`, statistic over requests)
METRICS = {
    "throughput": ("output_tokens_per_second", "duration_s", np.mean),
    "stream": ("stream_tokens_per_second_p50", "stream", np.median),
    "ttft_ms": ("ttft_ms_p50", "ttft_ms", np.median),
    "tpot_ms": ("tpot_ms_p50", "tpot_ms", np.median),
}


@dataclass(frozen=True)
class Interval:
    """A point estimate with bounds; NaN bounds when nothing could be resampled. `n` counts resampled units."""

    point: float
    lo: float
    hi: float
    n: int
    unit: str = REPEATS
    paired: bool = False

    @property
    def within_run(self) -> bool:
        """True when run-to-run variation is not in the interval."""
        return self.unit == WITHIN_RUN

    @property
    def side(self) -> int:
        """+1 if the interval lies above 1, -1 if below, 0 if it holds 1 or is unknown (for ratios)."""
        return int(self.lo > 1) - int(self.hi < 1)

    def map(self, f: Callable[[float], float]) -> "Interval":
        """The interval of a monotone function of the quantity; bounds swap if it falls."""
        ends = sorted([f(self.lo), f(self.hi)])
        return Interval(f(self.point), ends[0], ends[1], self.n, self.unit, self.paired)

    def text(self, decimals: int = 2) -> str:
        """`1.05 [1.02, 1.08]`, or "not measured here"."""
        return written(self.point, self.lo, self.hi, decimals)


def written(point: float, lo: float, hi: float, decimals: int = 2) -> str:
    """One way to print a figure and its interval, in tables and prose alike."""
    if pd.isna(point):
        return tables.NOT_MEASURED
    bounds = "" if pd.isna(lo) else f" [{lo:,.{decimals}f}, {hi:,.{decimals}f}]"
    return f"{point:,.{decimals}f}{bounds}"


def nothing(unit: str = NOTHING) -> Interval:
    """The interval of a quantity that was not measured."""
    return Interval(np.nan, np.nan, np.nan, 0, unit)


def expanded(level: float, n: int) -> float:
    """The level to ask of a bootstrap of n values so that it covers `level`.

    A bootstrap of few values is too narrow twice over: its spread is short by sqrt((n-1)/n) and it knows no t
    quantile. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69 (2015),
    widens the percentiles to make up for both. At n = 3 that means the whole range of the data, not more.
    """
    tail = stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1))
    return float(1 - 2 * tail)


def _bootstrap(samples: Sequence[np.ndarray], statistic: Callable, level: float, seed: int, paired: bool):
    wide = expanded(level, min(len(s) for s in samples))
    for method in ("BCa", "percentile"):  # BCa has no value when the jackknife or the bias is degenerate
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = stats.bootstrap(
                samples, statistic, paired=paired, confidence_level=wide, n_resamples=RESAMPLES, method=method,
                vectorized=True, rng=np.random.default_rng(seed),
            ).confidence_interval  # fmt: skip
        if np.isfinite(found.low) and np.isfinite(found.high):
            return float(found.low), float(found.high)
    return np.nan, np.nan


def interval(
    values: Sequence[float],
    level: float = LEVEL,
    seed: int = SEED,
    statistic: Callable = np.mean,
    within_run: bool = False,
) -> Interval:
    """Bootstrap interval of `statistic` (mean by default) over `values`: repeats, or requests with `within_run`.

    BCa where it is defined, percentile otherwise, at the level of `expanded`. One value has no bounds; equal values
    have bounds equal to them. The same seed gives the same interval.
    """
    x = np.asarray([v for v in values if pd.notna(v)], dtype=float)
    unit = WITHIN_RUN if within_run else REPEATS
    if len(x) == 0:
        return nothing(unit)
    point = float(statistic(x))
    if len(x) == 1:
        return Interval(point, np.nan, np.nan, 1, unit)
    lo, hi = (point, point) if np.ptp(x) == 0 else _bootstrap((x,), statistic, level, seed, False)
    return Interval(point, lo, hi, len(x), unit)


@functools.lru_cache
def coverage(n: int, level: float = LEVEL, trials: int = 300, seed: int = SEED) -> float:
    """How often `interval` holds the true mean of n normal values: its real level, by simulation."""
    if n < 2:
        return float("nan")
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(trials):
        found = interval(rng.normal(0.0, 1.0, n), level, seed)
        held += found.lo <= 0.0 <= found.hi
    return held / trials


def request_metrics(requests: pd.DataFrame) -> pd.DataFrame:
    """Per request: duration_s, stream (decode tokens/s), ttft_ms, tpot_ms; the first token belongs to the prefill."""
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

    Throughput is all tokens over all seconds, the rate of doing every workload's tokens once; per-stream speed is the
    harmonic mean for the same reason. A row needs every workload of the ledger: a point with a void cell has no pooled row.
    """
    good, wanted = keyed(tables.ok(cells)), cells.workload.nunique()
    rows = []
    by = ["configuration", "engine", "method", "concurrency", "repeat"]
    for names, group in good.groupby(by, sort=False):
        if group.workload.nunique() < wanted:
            continue
        summed = {c: group[c].sum(min_count=1) for c in ("requests", "output_tokens", "seconds", "steps", "drafted", "accepted")}
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
    cells: pd.DataFrame, requests: pd.DataFrame, level: float = LEVEL, seed: int = SEED, with_pooled: bool = False
) -> pd.DataFrame:
    """One row per (configuration, workload, concurrency): each of METRICS with `_lo` and `_hi`, n_repeats, n_void, unit.

    throughput and stream in tokens/s, ttft_ms and tpot_ms in ms; a figure is the mean over repeats, each of which is a
    rate or a median over requests. Void cells are in n_void and in no figure. `with_pooled` adds workload "all".
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
    columns = ["configuration", "engine", "method", "k", *POINT, "n_repeats", "n_void", "unit", "capped_at", *bounds]
    frame = pd.DataFrame(rows, columns=columns)
    return tables.ordered(frame, POINT) if len(frame) else frame


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
    """Ratio of two sets of cells (each one configuration at one point) in `metric`, geometric mean over repeats.

    Paired by repeat when both answered the same prompts: repeats are interleaved, so a pair shares its round's drift.
    Below three repeats, paired by prompt within the run. Void cells are ignored; NaN when one side has none.
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
        lo, hi = _bootstrap((x, y), lambda p, q, axis: p.mean(axis) - q.mean(axis), level, seed, False)
        return Interval(point, np.exp(lo), np.exp(hi), min(len(x), len(y)), REPEATS)
    u, v = (side.groupby("prompt_id")[per_request].mean().dropna() for side in (ra, rb))
    if same:
        u, v = u.align(v, join="inner")
    if min(len(u), len(v)) < 2:
        return Interval(point, np.nan, np.nan, min(len(x), len(y)), NOTHING)
    if metric == "throughput":  # Little's law again: the ratio of throughputs is that of mean durations, turned round
        u, v = v, u
    raw = float(statistic(u) / statistic(v))
    lo, hi = _bootstrap(
        (u.to_numpy(), v.to_numpy()), lambda p, q, axis: statistic(p, axis=axis) / statistic(q, axis=axis), level, seed, same
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
    """`configuration` over its engine's base at one point; NaN when either was not measured or the engine has no base."""
    at = cells[(cells.workload == workload) & (cells.concurrency == concurrency)]
    own = at[at.configuration == configuration]
    base = tables.base_of(cells, own.engine.iloc[0]) if len(own) else None
    return ratio_of(own, at[at.configuration == base], requests, metric, level, seed) if base else nothing()
