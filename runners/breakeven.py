"""Why speculation pays or loses: a step's cost against the tokens it yields.

speed-up = AL / r, where r is the time of a speculative decode step over the time of a plain one at the same
running batch. Break-even is therefore AL = r. Both sides come from the decode phase alone; the throughput
ratio beside them holds everything else too (prefill, queueing), which is why the two speed-ups may differ.
"""

import numpy as np
import pandas as pd

from runners import acceptance, intervals, machine_speed, statistics, tables
from runners.intervals import LEVEL, SEED, Interval

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


def step_cost(al: float, tpot_speculative: float, tpot_base: float) -> float:
    """r = AL x TPOT_speculative / TPOT_base: the cost of a speculative step in plain steps."""
    return al * tpot_speculative / tpot_base


def decode_tpot(cells: pd.DataFrame, requests: pd.DataFrame) -> pd.Series:
    """Milliseconds per decode token of each cell: all decode time over all decode tokens of its requests.

    A ratio of sums, as the accept length is, so that AL / r is the decode speed-up exactly; the ledger's
    median where there are no requests to sum.
    """
    sums = statistics.request_metrics(requests).groupby("key")[["decode_s", "decode_tokens"]].sum()
    found = []
    for keys, fallback in zip(statistics.keyed(cells)["keys"], cells.tpot_ms_p50, strict=True):
        own = sums.reindex(list(keys)).sum()
        found.append(1000 * own.decode_s / own.decode_tokens if own.decode_tokens > 0 else fallback)
    return pd.Series(found, index=cells.index, dtype=float)


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
    if len(pairs) >= statistics.MIN_REPEATS:
        cost = np.log(step_cost(pairs.al, pairs.tpot, pairs.tpot_base).astype(float))
        gain = np.log((pairs.tpot_base / pairs.tpot).astype(float))
        cost, gain = (intervals.interval(v, level, seed).map(np.exp) for v in (cost, gain))
        drift = machine_speed.drift(own, base)
        return cost.widened(drift), gain.widened(1 / drift)
    # Within the run the counts are fixed (they are the server's totals, not a request's): only time is
    # resampled, and its relative spread is put around the ratio of the cells' own figures.
    gain = float(np.exp(np.log(base.tpot).mean() - np.log(own.tpot).mean()))
    cost = float(np.exp(np.log(own.al).mean())) / gain
    slower = statistics.ratio_of(own, base, requests, "tpot_ms", level, seed)
    return slower.map(lambda q: cost * q / slower.point), slower.map(lambda q: gain * slower.point / q)


def step_costs(cells: pd.DataFrame, requests: pd.DataFrame, level: float = LEVEL, seed: int = SEED) -> pd.DataFrame:
    """One row per speculative (configuration, workload, concurrency), workload "all" being the pool of all of
    them.

    tokens_per_step (all decode steps counted), step_cost = r = break-even length,
    decode_speed_up (= tokens_per_step / r), speed_up (output throughput over the engine's base) and
    stream_speed_up (per-stream speed), each with `_lo`, `_hi`; ceiling (K + 1, what a perfect drafter would
    yield), drafted, accepted, drafted_share, paired, unit, capped_at (not null: batches differ, so r is not
    like for like), running and base_running (the most requests that ran at once, in the repeat with fewest).
    """
    every = statistics.keyed(cells)
    if len(cells):
        every = pd.concat([every, statistics.pooled(cells).assign(status="ok")], ignore_index=True)
    metrics = statistics.request_metrics(requests)
    rows = []
    speculative = every[every.method != "none"]
    for names, group in speculative.groupby(
        ["configuration", "engine", "method", "workload", "concurrency"], sort=False
    ):
        configuration, engine, method, workload, concurrency = names
        base = tables.base_of(every, engine)
        at = every[(every.workload == workload) & (every.concurrency == concurrency) & (every.configuration == base)]
        rows.append(
            dict(configuration=configuration, engine=engine, method=method, k=group.k.max(), base=base)
            | dict(workload=workload, concurrency=concurrency, n_void=int((group.status != "ok").sum()))
            | _point(tables.ok(group), tables.ok(at), metrics, level, seed)
        )
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return tables.ordered(frame, ["workload", "concurrency"]) if len(frame) else frame


def _point(own: pd.DataFrame, base: pd.DataFrame, metrics: pd.DataFrame, level, seed) -> dict:
    requests = metrics[metrics.key.isin({key for side in (own, base) for keys in side["keys"] for key in keys})]
    counts = acceptance.sums(own)
    if len(own):
        counts |= own.iloc[0][["engine", "method"]].to_dict()
    cost, gain = _cost_interval(own, base, requests, level, seed)
    total = statistics.ratio_of(own, base, requests, "throughput", level, seed)
    stream = statistics.ratio_of(own, base, requests, "stream", level, seed)
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


def reported(case: pd.DataFrame) -> pd.DataFrame:
    """The same arithmetic on the reported table: configuration, concurrency, accept_length, speed_up,
    step_cost, note.

    One run a row and no intervals, so these are points; at C=128 a cap on running requests makes the two
    sides serve different batches, and `like_for_like` is False.
    """
    rows = []
    for r in case[case.accept_length.notna()].itertuples():
        base = case[(case.engine == r.engine) & case.accept_length.isna()]
        if base.empty:
            continue
        for concurrency, column in ((1, "single_stream_tok_s"), (128, "c128_tok_s")):
            gain = getattr(r, column) / base.iloc[0][column]
            capped = concurrency > 1 and "cap" in str(r.notes)
            rows.append(
                {
                    "configuration": r.configuration,
                    "concurrency": concurrency,
                    "accept_length": r.accept_length,
                    "speed_up": gain,
                    "step_cost": r.accept_length / gain,
                    "ceiling": r.num_draft_tokens,
                    "like_for_like": not capped,
                    "note": f"not like for like: {r.notes}" if capped else "",
                }
            )
    columns = [
        "configuration",
        "concurrency",
        "accept_length",
        "speed_up",
        "step_cost",
        "ceiling",
        "like_for_like",
        "note",
    ]
    return pd.DataFrame(rows, columns=columns)


def reported_table(frame: pd.DataFrame) -> pd.DataFrame:
    """`reported` for reading."""
    return pd.DataFrame(
        {
            "configuration (reported)": frame.configuration,
            "C": frame.concurrency,
            "accept length": [f"{v:.2f}" for v in frame.accept_length],
            "speed-up over base": [f"{v:.2f}" for v in frame.speed_up],
            "step-cost ratio r = break-even length": [
                f"{v:.2f}" if fair else f"{v:.1f}" for v, fair in zip(frame.step_cost, frame.like_for_like, strict=True)
            ],
            "note": frame.note,
        }
    )


def _shown(costs: pd.DataFrame, name: str) -> list[str]:
    triples = costs[[name, f"{name}_lo", f"{name}_hi"]].itertuples(index=False)
    return [intervals.written(*values) for values in triples]


def ratio_table(costs: pd.DataFrame) -> pd.DataFrame:
    """Output throughput and per-stream speed over the same engine's base, for reading."""
    return pd.DataFrame(
        {
            "configuration": costs.configuration,
            "workload": costs.workload,
            "C": costs.concurrency,
            "throughput / base": _shown(costs, "speed_up"),
            "stream speed / base": _shown(costs, "stream_speed_up"),
            "paired": ["yes" if p else "no" for p in costs.paired],
            "repeats": costs.n_repeats,
            "void": costs.n_void,
        }
    )


def table(costs: pd.DataFrame) -> pd.DataFrame:
    """`step_costs` for reading: what a step yields, what it costs, and both speed-ups with intervals."""
    lengths = [f"{v:.2f}" if pd.notna(v) else tables.NOT_MEASURED for v in costs.tokens_per_step]
    return pd.DataFrame(
        {
            "configuration": costs.configuration,
            "workload": costs.workload,
            "C": costs.concurrency,
            "tokens per step": lengths,
            "r = break-even length": _shown(costs, "step_cost"),
            "decode speed-up": _shown(costs, "decode_speed_up"),
            "throughput speed-up": _shown(costs, "speed_up"),
        }
    )
