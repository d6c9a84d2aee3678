"""The metrics of a cell and of a request, and the intervals that the requests of one run give.

Fewer repeats than MIN_REPEATS (summarise.py) have no interval of their own. Then the requests within the run are
resampled instead: such an interval does not hold the variation from run to run.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from runners.analyse.intervals import RESAMPLES, expanded


@dataclass(frozen=True)
class Metric:
    """How a metric is named and averaged."""

    column: str  # of the cells: the ledger's figure
    of_request: str | None  # column of `request_metrics`; None where a request alone has no such figure
    statistic: Callable  # over the requests of a workload
    over_workloads: Callable  # combines the workloads in the pool
    slower_is_more: bool = False
    # A closed loop's throughput is C requests per mean duration (Little's law): its relative interval is that of the
    # mean duration, inverted.
    inverse: bool = False


METRICS = {
    "throughput": Metric("output_tokens_per_second", "duration_s", np.mean, np.mean, inverse=True),
    "stream": Metric("stream_tokens_per_second_p50", "stream", np.median, stats.hmean),
    "ttft_ms": Metric("ttft_ms_p50", "ttft_ms", np.median, np.mean, slower_is_more=True),
    "tpot_ms": Metric("tpot_ms_p50", "tpot_ms", np.median, np.mean, slower_is_more=True),
    # Of a cell alone (goodput.attach): a request is within the limits or not, which leaves nothing to resample.
    "goodput": Metric("goodput_tokens_per_second", None, np.mean, np.mean),
}


@dataclass(frozen=True)
class RelativeBounds:
    """Bounds as factors of the point estimate; n: requests (prompts) in the smallest workload resampled."""

    lo: float
    hi: float
    n: int


def request_metrics(requests: pd.DataFrame) -> pd.DataFrame:
    """Per request without an error: key, prompt_id, duration_s, stream (decode tokens/s), ttft_ms, tpot_ms, decode_s,
    decode_tokens. The first token belongs to the prefill.

    Idempotent: a caller with many points computes them once.
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


def requests_behind(rows: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """The requests behind some rows, with the workload of each: the stratum it is resampled in."""
    workloads = {key: workload for keys in rows["keys"] for key, workload in keys.items()}
    own = metrics[metrics.key.isin(list(workloads))]
    return own.assign(workload=own.key.map(workloads))


class _Resamples:
    """One side's statistic, workload by workload: as measured, and over each resample.

    Each workload is resampled for itself: how many requests of each there are is the plan's choice, not chance.
    """

    def __init__(self, metric: Metric):
        self.metric = metric
        self.measured: list[float] = []
        self.resampled: list[np.ndarray] = []  # [RESAMPLES] of each workload

    def add(self, values: pd.Series, index: np.ndarray) -> None:
        """values: one a prompt; index [RESAMPLES, prompts]: which prompts each resample holds."""
        x = values.to_numpy()
        self.measured.append(self.metric.statistic(x))
        self.resampled.append(self.metric.statistic(x[index], axis=1))

    def relative(self) -> np.ndarray:
        """[RESAMPLES]: the figure over all workloads in each resample, over the measured one."""
        combine = self.metric.over_workloads
        return combine(np.array(self.resampled), axis=0) / combine(np.array(self.measured))


def metric_within_run(requests: pd.DataFrame, name: str, level: float, seed: int) -> RelativeBounds | None:
    """Bounds of a metric by resampling the requests of one run: rows of `request_metrics` with their `workload`.

    None when a workload has fewer than two requests.
    """
    metric, rng = METRICS[name], np.random.default_rng(seed)
    if metric.of_request is None:
        return None
    side, counts = _Resamples(metric), []
    for workload in sorted(set(requests.workload)):
        values = _by_prompt(requests, workload, metric.of_request)
        if len(values) < 2:
            return None
        side.add(values, _draw(rng, len(values)))
        counts.append(len(values))
    return _bounds(metric, side.relative(), level, min(counts)) if counts else None


def ratio_within_run(
    upper: pd.DataFrame, lower: pd.DataFrame, name: str, level: float, seed: int, paired: bool
) -> RelativeBounds | None:
    """Bounds of the ratio upper / lower of a metric, as `metric_within_run`. paired: both sides answered the same
    prompts, so a resample holds the same ones on both.
    """
    metric, rng = METRICS[name], np.random.default_rng(seed)
    if metric.of_request is None:
        return None
    above, below, counts = _Resamples(metric), _Resamples(metric), []
    for workload in sorted({*upper.workload, *lower.workload}):
        a, b = (_by_prompt(side, workload, metric.of_request) for side in (upper, lower))
        if paired:
            a, b = a.align(b, join="inner")
        if min(len(a), len(b)) < 2:
            return None
        index = _draw(rng, len(a))
        above.add(a, index)
        below.add(b, index if paired else _draw(rng, len(b)))
        counts += [len(a), len(b)]
    return _bounds(metric, above.relative() / below.relative(), level, min(counts)) if counts else None


def _by_prompt(requests: pd.DataFrame, workload: str, column: str) -> pd.Series:
    """One value a prompt: the mean over the repeats of it, which share its luck."""
    return requests[requests.workload == workload].groupby("prompt_id")[column].mean().dropna()


def _draw(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, n, (RESAMPLES, n))


def _bounds(metric: Metric, relative: np.ndarray, level: float, n: int) -> RelativeBounds:
    relative = 1 / relative if metric.inverse else relative
    tail = (1 - expanded(level, n)) / 2
    lo, hi = np.quantile(relative, [tail, 1 - tail])
    return RelativeBounds(float(lo), float(hi), n)
