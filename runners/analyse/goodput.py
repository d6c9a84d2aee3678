"""Goodput: the load that a configuration carries while its users are still served within the latency limits.

A request keeps the limits (workload.latency_limits) when its time to first token, its time per output token and, where
the profile gives one, its end-to-end latency are all within them. The attainment of a load is the share of its requests
that do. Goodput is the highest load whose attainment reaches the profile's floor (0.9): so DistServe defines it (Zhong
et al., OSDI 2024), as a request rate. Here it stands in tokens per second too. A load below the floor has none: to add
up the good requests of an overloaded server would let a millisecond on either side of a limit decide.

How much that floor and those limits decide is shown and not assumed: every figure is made for a range of limits.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from runners.analyse import results
from runners.profiles.latency import LatencyLimits

COLUMN = "goodput_tokens_per_second"
WHO = ["configuration", "engine", "method", "workload"]
LOAD = ["load", "concurrency", "rate"]  # closed: C requests in flight; open: requests per second
POINTS = [*WHO, *LOAD, "requests", "blocks", "attained_blocks", "attainment", "needs", "requests_per_second"]
POINTS += ["tokens_per_second"]
VALUES = ["tokens_per_second", "requests_per_second", "concurrency", "rate"]
# The limits times these: from half of them to three times, closer around the profile's own.
SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)


def attach(cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits | None) -> pd.DataFrame:
    """Cells with COLUMN: the cell's own tokens/s where its point reaches the floor, else 0; NaN for void cells.

    Unchanged where the profile sets no limits.
    """
    if limits is None or cells.empty:
        return cells
    found = needed(cells, requests, limits)
    reached = found.groupby("point").needed.agg(needs, floor=limits.attainment) <= 1
    meets = cells.key.map(found.drop_duplicates("key").set_index("key").point.map(reached))
    speed = cells.output_tokens_per_second.astype(float).where(meets.eq(True), 0.0)
    return cells.assign(**{COLUMN: speed.where(meets.notna())})


def needs(needed: pd.Series, floor: float) -> float:
    """What the limits must be multiplied by for the share `floor` of these requests to keep them."""
    return float(np.sort(needed.to_numpy())[math.ceil(floor * len(needed) - 1e-9) - 1])


def needed(cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits) -> pd.DataFrame:
    """One row a judged request of an ok cell: WHO, LOAD, key, point (a number), needed.

    needed: what the limits must be multiplied by for this request to keep them; above 1 it misses one, and a request
    that was never answered keeps none (infinity). Latencies count from when a request was intended.
    """
    good = results.ok(cells)
    load = good.load.fillna("closed") if "load" in good else pd.Series("closed", index=good.index)
    good = good.assign(load=load, rate=good.rate.astype(float) if "rate" in good else np.nan)
    good = good[["key", *WHO, *LOAD]].assign(point=good.groupby([*WHO, *LOAD], dropna=False).ngroup())
    rows = requests[["key"]].assign(
        role=requests.role.astype(object).fillna("timed") if "role" in requests else "timed",
        needed=_needed(requests, limits),
    )
    joined = good.merge(rows, on="key")
    # What a closed loop's window cuts is no request too late; what an open loop cuts is.
    judged = (joined.role == "timed") | ((joined.role == "cut") & (joined.load == "open"))
    return joined[judged].drop(columns="role").reset_index(drop=True)


def _needed(requests: pd.DataFrame, limits: LatencyLimits) -> pd.Series:
    begun = requests.sent_s.astype(float)
    if "intended_s" in requests:
        begun = requests.intended_s.astype(float).fillna(begun)
    first, last = requests.first_token_s.astype(float), requests.last_token_s.astype(float)
    later = (requests.output_tokens.astype(float) - 1).clip(lower=0)
    shares = [1e3 * (first - begun) / limits.ttft_ms, 1e3 * (last - first) / later.where(later > 0) / limits.tpot_ms]
    shares[1] = shares[1].fillna(0.0)  # a single token has no later one to wait for
    if limits.e2e_ms is not None:
        shares.append(1e3 * (last - begun) / limits.e2e_ms)
    answered = first.notna() & last.notna() & (requests.error.isna() if "error" in requests else True)
    if "role" in requests:
        answered &= requests.role != "cut"
    return pd.concat(shares, axis=1).max(axis=1).where(answered, np.inf)


def points(cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits) -> pd.DataFrame:
    """One row a configuration, workload and load (POINTS).

    attainment: share of all requests of the point's blocks that keep the limits; needs: the scale of the limits at
    which it would just reach the floor (`needs`; at most 1: it does); attained_blocks: how many blocks reach it by
    themselves. requests_per_second: the rate of an open loop, and what a closed one answered. tokens_per_second: mean
    over blocks.
    """
    found, floor = needed(cells, requests, limits), limits.attainment
    if found.empty:
        return pd.DataFrame(columns=POINTS)
    speed = cells.set_index("key").output_tokens_per_second.astype(float)
    length = requests.groupby("key").output_tokens.max().astype(float)  # of an answer that was not cut
    rows = []
    for names, group in found.groupby([*WHO, *LOAD], dropna=False, sort=False):
        row = dict(zip([*WHO, *LOAD], names, strict=True))
        by_block = group.groupby("key").needed.agg(needs, floor=floor)
        own = speed[by_block.index]
        row |= {"requests": len(group), "blocks": len(by_block), "attained_blocks": int((by_block <= 1).sum())}
        row |= {"attainment": float((group.needed <= 1).mean()), "needs": needs(group.needed, floor)}
        rate = row["rate"] if row["load"] == "open" else float((own / length[by_block.index]).mean())
        rows.append(row | {"requests_per_second": rate, "tokens_per_second": float(own.mean())})
    return results.ordered(pd.DataFrame(rows, columns=POINTS), ["workload", "load", "rate", "concurrency"])


def best(found: pd.DataFrame, scale: float = 1.0) -> pd.DataFrame:
    """The rows of `points` that are each configuration's goodput under the limits times `scale`, by workload and kind
    of load; no row where no load reaches the floor.

    Of a closed loop the load with the most tokens per second. Of an open loop the highest rate up to which every
    measured rate reaches the floor: one lucky window at a higher rate is no goodput.
    """
    if found.empty:
        return found
    # The worst so far, rate by rate; a closed loop's loads each stand for themselves.
    rising = found.sort_values("rate", kind="stable")
    worst = rising.groupby([*WHO, "load"], sort=False).needs.cummax()
    good = found[worst.where(found.load == "open", found.needs).reindex(found.index) <= scale]
    ranked = good.sort_values(["rate", "tokens_per_second"], ascending=False, kind="stable", na_position="first")
    return results.ordered(ranked.drop_duplicates([*WHO, "load"]), ["workload", "load"])


def winners(found: pd.DataFrame, scale: float = 1.0) -> pd.DataFrame:
    """The rows of `best` with the most tokens per second, one a workload and kind of load."""
    ranked = best(found, scale).sort_values("tokens_per_second", ascending=False, kind="stable")
    return ranked.drop_duplicates(["workload", "load"]).sort_values(["workload", "load"]).reset_index(drop=True)


def by_limit(found: pd.DataFrame, scales: Sequence[float] = SCALES) -> pd.DataFrame:
    """Goodput against the limits: WHO, load, scale, tokens_per_second (0: no load reaches the floor),
    requests_per_second, concurrency, rate. found: `points`.
    """
    keep = [*WHO, "load"]
    every = found[keep].drop_duplicates()
    parts = [
        every.merge(best(found, scale)[[*keep, *VALUES]], on=keep, how="left").assign(scale=scale) for scale in scales
    ]
    return pd.concat(parts, ignore_index=True).fillna({"tokens_per_second": 0.0, "requests_per_second": 0.0})


def attainment_by_limit(
    cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits, scales: Sequence[float] = SCALES
) -> pd.DataFrame:
    """Attainment of each load against the limits: WHO, LOAD, scale, attainment."""
    grouped = needed(cells, requests, limits).groupby([*WHO, *LOAD], dropna=False, sort=False).needed
    parts = [
        grouped.agg(lambda x, s=scale: float((x <= s).mean())).rename("attainment").reset_index() for scale in scales
    ]
    return pd.concat([part.assign(scale=scale) for part, scale in zip(parts, scales, strict=True)], ignore_index=True)
