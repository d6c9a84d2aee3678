"""Why speculation pays or loses: a step's cost against the tokens it yields.

    decode speed-up = AL / r          r = AL x TPOT_speculative / TPOT_base, within a block

r is the time of a speculative decode step over the time of a plain one at the same running batch, so break-even is
AL = r. AL comes from the counts of the same cell, TPOT from all its decode time over all its decode tokens, and every
mean is one of logarithms over the same blocks: so AL / r is exactly the decode speed-up, n-gram and the pool included.
The throughput ratio beside them holds everything else too (prefill, queueing): that is why the two speed-ups may
differ.
"""

import numpy as np
import pandas as pd

from runners.analyse import acceptance, blocks, comparisons, inference, multiple_comparisons, results
from runners.analyse.blocks import Point
from runners.analyse.comparisons import Data
from runners.analyse.inference import Estimate
from runners.core.remember import remembered

MARGIN = 0.03  # what makes a difference in practice, where no profile says
FIGURES = {"step_cost": blocks.STEP_COST, "decode_speed_up": blocks.DECODE, "speed_up": "throughput"}
FIGURES |= {"stream_speed_up": "stream"}  # column -> metric of comparisons.ratio
ENDS = ("", "_lo", "_hi", "_error", "_df", "_campaign_error", "_campaign_df")
COLUMNS = [
    *("configuration", "engine", "method", "k", "base", "workload", "concurrency", "tokens_per_step", "ceiling"),
    *(f"{figure}{end}" for figure in FIGURES for end in ENDS),
    *("p", "q", "pays", "level", "n_starts", "n_blocks", "n_campaigns"),
    *("n_repeats", "n_void", "unit", "paired", "capped_at", "drafted", "accepted", "drafted_share"),
    *("running", "base_running", "modelled"),
]
TEXT = ("configuration", "engine", "method", "base", "workload", "pays", "unit", "paired", "modelled")


def step_cost_ratio(al: float, tpot_speculative: float, tpot_base: float) -> float:
    """r = AL x TPOT_speculative / TPOT_base: the cost of a speculative step in plain steps; both TPOTs in one unit."""
    return al * tpot_speculative / tpot_base


def margin_of(cells: pd.DataFrame) -> float:
    """The practical margin of the cells' profile, a share; MARGIN where the profile is not here."""
    plan = results.profile_of(cells)
    return plan.practical_margin if plan else MARGIN


@remembered
def step_costs(cells: pd.DataFrame, requests: pd.DataFrame, margin: float | None = None) -> pd.DataFrame:
    """One row (COLUMNS) a speculative configuration, workload and concurrency; workload "all" is the pool of all.

    tokens_per_step: over all decode steps; step_cost: r, which is the break-even length; decode_speed_up:
    tokens_per_step / r; speed_up: output throughput over the engine's base; stream_speed_up: speed of a stream over the
    base's; each of FIGURES with `_lo`, `_hi`, and the standard error of its logarithm (`_error`) on `_df` degrees of
    freedom; no bounds where the error is not known. `_campaign_error`, `_campaign_df`: the same of the mean of a single
    campaign, among all campaigns; NaN where no comparison of the engine holds two. The pool is the mean of the
    workloads' logarithms.

    p, q, pays: of speed_up (`multiple_comparisons.answered`); level: of the intervals; n_starts, n_blocks, n_campaigns:
    what speed_up rests on; unit: its outer unit. margin: a share; the profile's by default. ceiling: K + 1, what a
    perfect drafter would yield. drafted, accepted: tokens. drafted_share: of decode steps. capped_at: where it is not
    null the batches differ, so r is not like for like. running, base_running: the most requests that ran at once, in
    the cell with fewest. modelled: tokens_per_step and r rest on steps that the engine does not count
    (acceptance.is_modelled).
    """
    data = Data(cells, requests)
    workloads = sorted(set(cells["workload"]))
    cells = cells[[c for c in _USED if c in cells]]
    by_point = {key: rows for key, rows in cells.groupby(["configuration", "workload", "concurrency"], sort=False)}
    rows, totals = [], []
    of_configuration = cells[cells.method != "none"].groupby(["configuration", "engine", "method"], sort=False)
    for (configuration, engine, method), own in of_configuration:
        base = data.base(configuration)
        names = dict(configuration=configuration, engine=engine, method=method, base=base)
        for concurrency in sorted(set(own["concurrency"])):
            at = own[own.concurrency == concurrency]
            found = {}
            for workload in workloads:
                if not (at.workload == workload).any():
                    continue
                point = Point(configuration, workload, int(concurrency))
                found[workload] = _figures(data, point)
                beside = by_point.get((base, workload, concurrency), cells.iloc[:0])
                rows.append(names | _row(at[at.workload == workload], beside, workload, found[workload]))
                totals.append(found[workload]["speed_up"])
            beside = cells[(cells.configuration == base) & (cells.concurrency == concurrency)]
            if len(found) < len(workloads):
                continue
            pool = _pool(found)
            rows.append(names | _row(at, beside, "all", pool))
            totals.append(pool["speed_up"])
    frame = pd.DataFrame(rows, columns=COLUMNS)
    if frame.empty:
        return frame
    frame = multiple_comparisons.answered(frame, totals, margin_of(cells) if margin is None else margin)
    return results.ordered(frame, ["workload", "concurrency"])


_USED = ["configuration", "engine", "method", "profile", "workload", "concurrency", "status", "k", "capped_at"]
_USED += ["running_peak", *acceptance.COUNTS, "accepted_per_position", acceptance.WINDOWED, "server_output_tokens"]
_USED += ["output_tokens_per_request", acceptance.BEGUN]
_NAMES = [*FIGURES, *(f"{figure}_campaign" for figure in FIGURES), "tokens_per_step"]


def _figures(data: Data, point: Point) -> dict[str, Estimate]:
    """FIGURES of a point over its base, and its tokens per step by the same blocks where there is a base."""
    found = {figure: comparisons.over_base(data, point, metric) for figure, metric in FIGURES.items()}
    found |= {f"{figure}_campaign": comparisons.of_a_campaign(data, point, m) for figure, m in FIGURES.items()}
    length = comparisons.over_base(data, point, blocks.LENGTH)
    return found | {"tokens_per_step": length if length.starts else comparisons.alone(data, point, blocks.LENGTH)}


def _pool(found: dict[str, dict[str, Estimate]]) -> dict[str, Estimate]:
    return {name: comparisons.mean([of[name] for of in found.values()]) for name in _NAMES}


def _row(own: pd.DataFrame, base: pd.DataFrame, workload: str, found: dict[str, Estimate]) -> dict:
    """The figures of one row: the cells of a configuration and of its base at one point, void ones too."""
    good, plain = results.ok(own), results.ok(base)
    counts = acceptance.sums(good)
    if len(good):
        counts |= good.iloc[0][["engine", "method"]].to_dict()
    total = found["speed_up"]
    row = {
        "workload": workload,
        "concurrency": int(own["concurrency"].iloc[0]),
        "k": own["k"].max(),
        "tokens_per_step": found["tokens_per_step"].ratio,
        "ceiling": good.k.max() + 1 if len(good) else np.nan,
        "level": total.level,
        "n_starts": total.starts,
        "n_blocks": total.blocks,
        "n_campaigns": total.campaigns,
        "n_repeats": len(good),
        "n_void": len(own) - len(good),
        "unit": inference.unit(total),
        "paired": total.blocks > 0,
        "capped_at": pd.concat([good.capped_at, plain.capped_at]).astype(float).min(),
        "drafted": counts["drafted"],
        "accepted": counts["accepted"],
        "drafted_share": counts["steps"] / acceptance.decode_steps(counts) if len(good) else np.nan,
        "running": good.running_peak.astype(float).min(),
        "base_running": plain.running_peak.astype(float).min(),
        "modelled": acceptance.is_modelled(own["engine"].iloc[0], own["method"].iloc[0]),
    }
    for name in FIGURES:
        value, campaign = found[name], found[f"{name}_campaign"]
        ends = (value.ratio, *value.interval(), value.error, value.df, campaign.error, campaign.df)
        row |= {f"{name}{end}": figure for end, figure in zip(ENDS, ends, strict=True)}
    return row
