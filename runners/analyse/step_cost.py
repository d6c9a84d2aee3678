"""Why speculation pays or loses: a step's cost against the tokens it yields.

    speed-up = AL / r

r is the time of a speculative decode step over the time of a plain one at the same running batch, so break-even is
AL = r. Both sides come from the decode phase alone. The throughput ratio beside them holds everything else too
(prefill, queueing): that is why the two speed-ups may differ.
"""

import numpy as np
import pandas as pd

from runners.analyse import acceptance, intervals, machines, results, summarise
from runners.analyse.intervals import LEVEL, SEED, Interval
from runners.analyse.metrics import request_metrics

FIGURES = ["step_cost", "decode_speed_up", "speed_up", "stream_speed_up"]
COLUMNS = [
    *(
        "configuration",
        "engine",
        "method",
        "k",
        "base",
        "workload",
        "concurrency",
        "tokens_per_step",
        "ceiling",
    ),
    *(f"{figure}{end}" for figure in FIGURES for end in ("", "_lo", "_hi")),
    *("n_repeats", "n_void", "unit", "paired", "capped_at", "drafted", "accepted", "drafted_share"),
    *("running", "base_running"),
]


def step_cost_ratio(al: float, tpot_speculative: float, tpot_base: float) -> float:
    """r = AL x TPOT_speculative / TPOT_base: the cost of a speculative step in plain steps; both TPOTs in one unit."""
    return al * tpot_speculative / tpot_base


def decode_tpot(cells: pd.DataFrame, requests: pd.DataFrame) -> pd.Series:
    """Milliseconds per decode token of each cell: all decode time over all decode tokens of its requests.

    A ratio of sums, as the accept length is, so that AL / r is exactly the decode speed-up. The ledger's median where
    there are no requests to sum. cells: `summarise.keyed` or with a `key` each; float series on their index.
    """
    sums = request_metrics(requests).groupby("key")[["decode_s", "decode_tokens"]].sum()
    tpots = []
    for keys, fallback in zip(summarise.keyed(cells)["keys"], cells.tpot_ms_p50, strict=True):
        own = sums.reindex(list(keys)).sum()
        tpots.append(1000 * own.decode_s / own.decode_tokens if own.decode_tokens > 0 else fallback)
    return pd.Series(tpots, index=cells.index, dtype=float)


def _lengths(cells: pd.DataFrame) -> pd.Series:
    """Tokens per step of each cell, from its own counts."""
    return pd.Series([acceptance.tokens_per_step(r) for _, r in cells.iterrows()], index=cells.index, dtype=float)


def _cost_interval(own, base, requests, level, seed) -> tuple[Interval, Interval]:
    """(r, decode speed-up): over pairs of repeats, or over requests within the run when there are too few."""
    own = own.assign(tpot=decode_tpot(own, requests), al=_lengths(own)).dropna(subset=["tpot", "al"])
    base = base.assign(tpot=decode_tpot(base, requests)).dropna(subset=["tpot"])
    if own.empty or base.empty:
        return intervals.nothing(), intervals.nothing()
    pairs = own[["repeat", "al", "tpot"]].merge(base[["repeat", "tpot"]], on="repeat", suffixes=("", "_base"))
    if len(pairs) >= summarise.MIN_REPEATS:
        cost = np.log(step_cost_ratio(pairs.al, pairs.tpot, pairs.tpot_base).astype(float))
        gain = np.log((pairs.tpot_base / pairs.tpot).astype(float))
        cost, gain = (intervals.interval(v, level, seed).map(np.exp) for v in (cost, gain))
        drift = machines.speed_drift(own, base)
        return cost.widened(drift), gain.widened(1 / drift)
    # Within the run the counts are fixed (they are the server's totals, not a request's): only time is
    # resampled, and its relative spread is put around the ratio of the cells' own figures.
    gain = float(np.exp(np.log(base.tpot).mean() - np.log(own.tpot).mean()))
    cost = float(np.exp(np.log(own.al).mean())) / gain
    slower = summarise.ratio_of(own, base, requests, "tpot_ms", level, seed)
    return slower.map(lambda q: cost * q / slower.point), slower.map(lambda q: gain * slower.point / q)


def step_costs(cells: pd.DataFrame, requests: pd.DataFrame, level: float = LEVEL, seed: int = SEED) -> pd.DataFrame:
    """One row (COLUMNS) a speculative configuration, workload and concurrency; workload "all" is the pool of all.

    tokens_per_step: over all decode steps; step_cost: r, which is the break-even length; decode_speed_up:
    tokens_per_step / r; speed_up: output throughput over the engine's base; stream_speed_up: speed of a stream over the
    base's; each of FIGURES with `_lo`, `_hi`. ceiling: K + 1, what a perfect drafter would yield. drafted, accepted:
    tokens. drafted_share: of decode steps. unit, paired: of speed_up's interval. capped_at: where it is not null the
    batches differ, so r is not like for like. running, base_running: the most requests that ran at once, in the repeat
    with fewest.
    """
    every = summarise.keyed(cells)
    if len(cells):
        every = pd.concat([every, summarise.pooled(cells).assign(status="ok")], ignore_index=True)
    metrics = request_metrics(requests)
    rows = []
    speculative = every[every.method != "none"]
    for names, group in speculative.groupby(
        ["configuration", "engine", "method", "workload", "concurrency"], sort=False
    ):
        configuration, engine, method, workload, concurrency = names
        base = results.base_of(every, engine, configuration)
        at = every[(every.workload == workload) & (every.concurrency == concurrency) & (every.configuration == base)]
        rows.append(
            dict(configuration=configuration, engine=engine, method=method, k=group.k.max(), base=base)
            | dict(workload=workload, concurrency=concurrency, n_void=int((group.status != "ok").sum()))
            | _point(results.ok(group), results.ok(at), metrics, level, seed)
        )
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return results.ordered(frame, ["workload", "concurrency"]) if len(frame) else frame


def _point(own: pd.DataFrame, base: pd.DataFrame, metrics: pd.DataFrame, level, seed) -> dict:
    """The figures of one row: ok cells of a configuration and of its base at one point."""
    requests = metrics[metrics.key.isin({key for side in (own, base) for keys in side["keys"] for key in keys})]
    counts = acceptance.sums(own)
    if len(own):
        counts |= own.iloc[0][["engine", "method"]].to_dict()
    cost, gain = _cost_interval(own, base, requests, level, seed)
    total = summarise.ratio_of(own, base, requests, "throughput", level, seed)
    stream = summarise.ratio_of(own, base, requests, "stream", level, seed)
    row = {
        "tokens_per_step": acceptance.tokens_per_step(counts) if len(own) else np.nan,
        "ceiling": own.k.max() + 1 if len(own) else np.nan,
        "n_repeats": len(own),
        "unit": total.unit,
        "paired": total.paired,
        "capped_at": pd.concat([own.capped_at, base.capped_at]).astype(float).min(),
        "drafted": counts["drafted"],
        "accepted": counts["accepted"],
        "drafted_share": counts["steps"] / acceptance.decode_steps(counts) if len(own) else np.nan,
        "running": own.running_peak.astype(float).min(),
        "base_running": base.running_peak.astype(float).min(),
    }
    for name, value in zip(FIGURES, (cost, gain, total, stream), strict=True):
        row |= {name: value.point, f"{name}_lo": value.lo, f"{name}_hi": value.hi}
    return row
