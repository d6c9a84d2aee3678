"""Averages over cells: what each configuration delivers, in absolute terms.

Ratios are made within blocks (comparisons.py). A speed moves with the machine's hour, so its interval needs campaigns.
"""

import numpy as np
import pandas as pd
from scipy import stats

from runners.analyse import acceptance, blocks, comparisons, inference, results, variances
from runners.analyse.inference import CAMPAIGNS, NOTHING
from runners.analyse.metrics import METRICS
from runners.core.remember import remembered

POINT = ["workload", "concurrency"]
NAMES = ["configuration", "engine", "method", *POINT]


def pooled(cells: pd.DataFrame) -> pd.DataFrame:
    """All workloads of a (configuration, concurrency, campaign, start, repeat) as one row, workload "all".

    Ok cells only; the columns of `cells`. Throughput is all tokens over all seconds, the rate of doing every workload's
    tokens once; per-stream speed is the harmonic mean for the same reason. A row needs every workload of the ledger: a
    point with a void cell has no pooled row.
    """
    good, wanted = blocks.numbered(results.ok(cells)), cells.workload.nunique()
    rows = []
    by = ["configuration", "engine", "method", "concurrency", "campaign", "start", "repeat"]
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
            }
        )
    return pd.DataFrame(rows, columns=list(good.columns))


def _pooled_goodput(group: pd.DataFrame, seconds: float) -> dict[str, float]:
    """Tokens within the limits over all seconds; empty where no limits are set."""
    column = METRICS["goodput"].column
    return {column: float((group[column] * group.seconds).sum() / seconds)} if column in group else {}


def _over_campaigns(good: pd.DataFrame, column: str) -> inference.Estimate:
    """The logarithm of a speed with its error over campaigns; without one where there is only one campaign."""
    known = blocks.numbered(good[good[column].notna() & (good[column] > 0)])
    logs = np.log(known[column].astype(float)).groupby([known["campaign"], known["start"]]).mean()
    campaigns = [[list(starts)] for _, starts in logs.groupby(level=0)]
    if len(campaigns) < 2:
        return comparisons.UNKNOWN
    means = [starts[0] for starts in campaigns]
    return inference.estimate(means, variances.pooled([means]))


@remembered
def summarise(cells: pd.DataFrame, with_pooled: bool = False) -> pd.DataFrame:
    """One row per (configuration, workload, concurrency): NAMES, k, n_repeats, n_campaigns, n_void, unit, capped_at,
    and each of METRICS with `_lo` and `_hi`.

    throughput, stream and goodput in tokens/s, ttft_ms and tpot_ms in ms; a figure is the mean over cells, each of
    which is a rate or a median over requests. A speed is a machine's own, today: its bounds are over campaigns, by
    Student's t on their mean logarithms, and absent (NaN) with one campaign. unit: what they are over. Void cells are
    in n_void and in no figure. `with_pooled` adds workload "all".
    """
    every = blocks.numbered(cells)
    if with_pooled and len(cells):
        every = pd.concat([every, pooled(cells).assign(status="ok")], ignore_index=True)
    figures = [m.column for m in METRICS.values() if m.column in every]
    marks = [c for c in ("superseded",) if c in every]
    every = every[[*NAMES, "k", "status", *marks, "campaign", "start", "capped_at", *figures]]
    rows = []
    for names, group in every.groupby(NAMES, sort=False):
        good = results.ok(group)
        campaigns = good["campaign"].nunique()
        row = dict(zip(NAMES, names, strict=True))
        row |= {
            "k": group.k.max(),
            "n_repeats": len(good),
            "n_campaigns": campaigns,
            "n_void": int((group.status != "ok").sum()),
        }
        row |= {"unit": CAMPAIGNS if campaigns > 1 else NOTHING, "capped_at": good.capped_at.min()}
        for m, metric in METRICS.items():
            row |= dict.fromkeys((m, f"{m}_lo", f"{m}_hi"), np.nan)
            if metric.column in good and good[metric.column].notna().any():
                mean = float(good[metric.column].mean())
                found = _over_campaigns(good, metric.column) if campaigns > 1 else comparisons.UNKNOWN
                low, high = (end / found.ratio for end in found.interval())
                row |= {m: mean, f"{m}_lo": mean * low, f"{m}_hi": mean * high}
        rows.append(row)
    bounds = [f"{m}{end}" for m in METRICS for end in ("", "_lo", "_hi")]
    columns = [*NAMES[:3], "k", *POINT, "n_repeats", "n_campaigns", "n_void", "unit", "capped_at", *bounds]
    frame = pd.DataFrame(rows, columns=columns)
    return results.ordered(frame, POINT) if len(frame) else frame
