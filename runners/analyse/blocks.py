"""Blocks: the figures of one short window of each side, measured seconds apart, and the ratios made within them.

A block is all rows of one campaign, start and block number at one (workload, concurrency). Rows from before blocks were
numbered have no campaign: there the pair of cells with the same round (`start`) and repeat (`block`) is the block.
"""

import math
from collections import defaultdict
from typing import NamedTuple

import numpy as np
import pandas as pd

from runners.analyse import acceptance, results
from runners.analyse.metrics import METRICS, decode_tpot

DECODE, STEP_COST, LENGTH = "decode", "step_cost", "length"
Block = tuple[str, int, int]  # campaign, start, block
Campaigns = dict[str, dict[int, list[float]]]  # campaign -> start -> the logarithms of its blocks


class Point(NamedTuple):
    """One configuration at one workload and concurrency."""

    configuration: str
    workload: str
    concurrency: int


def numbered(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells with `campaign` (text), `start` and `block` (whole numbers) filled in where rows do not have them."""

    def column(name: str, otherwise: str) -> pd.Series:
        missing = pd.Series(np.nan, index=cells.index)
        first, second = (pd.to_numeric(cells[c]) if c in cells else missing for c in (name, otherwise))
        return first.fillna(second).fillna(0).astype(int)

    campaign = cells["campaign"] if "campaign" in cells else pd.Series("", index=cells.index)
    return cells.assign(
        campaign=campaign.where(campaign.notna(), "").astype(str),
        start=column("start", "round"),
        block=column("block", "repeat"),
    )


def values(cells: pd.DataFrame, requests: pd.DataFrame | None = None) -> dict[str, dict[Point, dict[Block, float]]]:
    """metric -> point -> block -> the natural logarithm of the figure, of ok cells alone.

    Metrics: those of METRICS; `decode`, decode tokens per millisecond of one stream (`decode_tpot`, from `requests`, or
    the ledger's median without them); `length`, tokens per step (acceptance.tokens_per_step: counted where the engine
    counts all its steps, else modelled as decode_steps says). Several rows of one block are averaged.
    """
    good = numbered(results.ok(cells))
    figures = {m: good[d.column].astype(float) for m, d in METRICS.items() if d.column in good}
    tpot = good["tpot_ms_p50"].astype(float) if requests is None else decode_tpot(good, requests)
    figures[DECODE] = 1 / tpot
    figures[LENGTH] = lengths(good)
    keys = list(zip(good.configuration, good.workload, good.concurrency.astype(int), strict=True))
    blocks = list(zip(good.campaign, good.start, good.block, strict=True))
    found: dict[str, dict[Point, dict[Block, float]]] = {}
    for metric, series in figures.items():
        rows: dict[Point, dict[Block, list[float]]] = defaultdict(lambda: defaultdict(list))
        for key, block, value in zip(keys, blocks, series.to_numpy(), strict=True):
            if value > 0 and math.isfinite(value):
                rows[Point(*key)][block].append(math.log(value))
        found[metric] = {p: {b: sum(v) / len(v) for b, v in own.items()} for p, own in rows.items()}
    return found


def lengths(cells: pd.DataFrame) -> pd.Series:
    """Tokens per step of each cell, from its own counts; 1 without speculation."""
    every = [1.0 if r["method"] == "none" else acceptance.tokens_per_step(r) for r in cells.to_dict("records")]
    return pd.Series(every, index=cells.index, dtype=float)


def by_start(logs: dict[Block, float]) -> Campaigns:
    """Logarithms by campaign and start."""
    found: Campaigns = {}
    for (campaign, start, _), value in sorted(logs.items()):
        found.setdefault(campaign, {}).setdefault(start, []).append(value)
    return found


def ratios(upper: dict[Block, float], lower: dict[Block, float]) -> dict[Block, float]:
    """The log ratio of each block that holds both sides; blocks of different campaigns are never paired."""
    return {block: upper[block] - lower[block] for block in upper.keys() & lower.keys()}
