"""What the step model is fitted to: the duration of a decode step at each measured point, and what it shared."""

import numpy as np
import pandas as pd

from runners.analyse import acceptance, comparisons, metrics, results
from runners.analyse.blocks import DECODE, LENGTH, STEP_COST, Point
from runners.analyse.comparisons import Data
from runners.analyse.load_simulation import DecodeLoad
from runners.core.remember import remembered
from runners.profiles.methods import CHAINS

POINT = ["configuration", "engine", "method", "k", "workload", "concurrency"]
LOAD = ["requests", "at_once", "prompt", "output"]  # LoadShape's fields; at_once: C, or the lower cap
COLUMNS = [*POINT, "drafter", *LOAD, "context", "batch", "prefill"]
COLUMNS += ["step_ms", "plain_ms", "tokens_per_step", "scatter"]
SAME_STEP_S = 0.02  # first tokens of one step reach the client within this


@remembered
def points(cells: pd.DataFrame, requests: pd.DataFrame, groups: dict[str, str] | None = None) -> pd.DataFrame:
    """One row a point of one engine's plain and of its chained configurations (EAGLE-3, draft model): COLUMNS.

    groups: configuration -> the drafter whose cost it has (crossover.drafters); its own name where none is given.

    tokens_per_step (AL) and r are geometric means over the blocks that a configuration shares with its base, as
    step_cost has them: so AL / r is the decode speed-up exactly, and what drifted from block to block is in no r.
    step_ms: TPOT of a plain point; of a speculative one plain_ms x r. plain_ms: its base's TPOT; NaN where the two
    share no block, and step_ms is then the configuration's own TPOT x AL. scatter: the standard error of the logarithm
    of a plain point's TPOT, or of a speculative one's speed-up (NaN with one block). requests: those of a burst; NaN
    where C stayed in flight for the whole window. context: the prompt and half the answer, in tokens: what a step
    attends to on average. batch, prefill: decode_load. n-gram configurations are left out: their steps are of two
    kinds (with a draft or without).
    """
    good = results.ok(cells)
    good = good[good.method.isin(("none", *CHAINS)) & good.context_tokens.notna()]
    good = good[good["load"] != "open"] if "load" in good else good  # there C says nothing of the batch
    if good.empty:
        return pd.DataFrame(columns=COLUMNS)
    good = good.assign(tpot=metrics.decode_tpot(good, requests), k=good.k.fillna(0))
    lengths = [1.0 if r.method == "none" else acceptance.tokens_per_step(r) for _, r in good.iterrows()]
    good = good.assign(al=lengths).dropna(subset=["tpot", "al"])
    loads = _decode_loads(good, requests)
    good = good.assign(batch=[load.batch for load in loads], prefill=[load.prefill for load in loads])
    data, rows = Data(cells, requests), []
    for names, group in good.groupby(POINT, sort=False):
        point = dict(zip(POINT, names, strict=True))
        drafter = (groups or {}).get(point["configuration"], point["configuration"]) if point["k"] else ""
        rows.append(point | {"drafter": drafter} | _means(group) | _step(group, good, data))
    return pd.DataFrame(rows, columns=COLUMNS)


def _step(group: pd.DataFrame, cells: pd.DataFrame, data: Data) -> dict[str, float]:
    """step_ms, plain_ms, tokens_per_step and scatter of one point, from its cells and those beside them."""
    first, own = group.iloc[0], np.log(group[["tpot", "al"]].astype(float))
    if first.method == "none":
        step_ms = np.exp(own.tpot.mean())
        scatter = own.tpot.std() / np.sqrt(len(own)) if len(own) > 1 else np.nan
        return _figures(step_ms, step_ms, 1.0, scatter)
    plain = cells[cells.configuration == data.base(first.configuration)]
    plain = plain[(plain.workload == first.workload) & (plain.concurrency == first.concurrency)]
    at = Point(first.configuration, first.workload, int(first.concurrency))
    r, length, speed_up = (comparisons.over_base(data, at, figure) for figure in (STEP_COST, LENGTH, DECODE))
    if plain.empty or not r.starts:
        return _figures(np.exp(own.sum(axis=1).mean()), np.nan, np.exp(own.al.mean()), np.nan)
    # A base has a row in each block of each of its rivals: all of them say what its step takes.
    plain_ms = np.exp(np.log(plain.tpot.astype(float)).mean())
    return _figures(plain_ms * r.ratio, plain_ms, length.ratio, speed_up.error if speed_up.df > 0 else np.nan)


def _figures(step_ms, plain_ms, tokens_per_step, scatter) -> dict[str, float]:
    values = (step_ms, plain_ms, tokens_per_step, scatter)
    return dict(zip(("step_ms", "plain_ms", "tokens_per_step", "scatter"), map(float, values), strict=True))


def _means(group: pd.DataFrame) -> dict[str, float]:
    """The load of one point, over its repeats: the other figures of COLUMNS."""
    prompt, output = group.context_tokens.mean(), group.output_tokens_per_request.mean()
    windows = "occupancy" in group and group.occupancy.notna().any()
    return {
        "requests": np.nan if windows else group.requests.mean(),
        "at_once": group.concurrency.astype(float).where(group.capped_at.isna(), group.capped_at).mean(),
        "prompt": prompt,
        "output": output,
        "context": prompt + output / 2,
        "batch": group.batch.mean(),
        "prefill": group.prefill.mean(),
    }


def _decode_loads(cells: pd.DataFrame, requests: pd.DataFrame) -> list[DecodeLoad]:
    """decode_load of each cell; C (or the cap) and no prefill where its requests are not at hand."""
    good = requests[requests.error.isna()] if "error" in requests else requests
    columns = ["first_token_s", "last_token_s", "prompt_tokens", "output_tokens"]
    known = all(c in good for c in columns)
    # Requests before and after the window are company for those in it; what is asked is what the timed ones shared.
    roles = good["role"] if "role" in good else pd.Series(metrics.TIMED, index=good.index)
    good = good.assign(timed=roles.isna() | (roles == metrics.TIMED))
    good = good.dropna(subset=columns) if known else good.iloc[:0]
    figures, timed = good[columns if known else []].to_numpy(float), good["timed"].to_numpy(bool)
    rows_of = good.groupby("key").indices  # arrays, not a frame a cell: every report asks for hundreds of cells
    loads = []
    for r in cells.itertuples():
        rows = rows_of.get(r.key, np.empty(0, int))
        if not timed[rows].any():
            loads.append(DecodeLoad(float(r.concurrency if pd.isna(r.capped_at) else r.capped_at), 0.0))
        else:
            loads.append(decode_load(*figures[rows].T, r.al, timed=timed[rows]))
    return loads


def decode_load(
    first_token_s, last_token_s, prompt_tokens, output_tokens, accept_length: float, timed: np.ndarray | None = None
) -> DecodeLoad:
    """What decoding requests shared, from their figures: float arrays [requests] in seconds, seconds, tokens, tokens.

    The prompt of another request counts for one that was decoding when the other's first token came. It counts in the
    request's last step too, which brings both tokens at once. Two prompts that were read together bring their first
    tokens at the same moment: neither counts for the other. timed: the requests that are asked about; all by default.
    """
    timed = np.ones(len(first_token_s), bool) if timed is None else timed
    first, last = first_token_s[timed][:, None], last_token_s[timed][:, None]
    decode_s = last - first
    if not (decode_s > 0).any():
        return DecodeLoad(float(len(decode_s)), 0.0)
    # [timed, requests]: seconds that two requests decode together
    shared_s = (last.clip(max=last_token_s[None]) - first.clip(min=first_token_s[None])).clip(min=0)
    batch = shared_s.sum() / decode_s.sum()
    after_mine = first_token_s[None] > first + SAME_STEP_S
    read_meanwhile = after_mine & (first_token_s[None] < last + SAME_STEP_S)
    steps = (output_tokens[timed] - 1).sum() / accept_length
    prefill = float((read_meanwhile * prompt_tokens[None]).sum() / steps) if steps > 0 else 0.0
    return DecodeLoad(float(batch), prefill)
