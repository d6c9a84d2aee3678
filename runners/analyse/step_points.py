"""What the step model is fitted to: the duration of a decode step at each measured point, and what it shared."""

import numpy as np
import pandas as pd

from runners.analyse import acceptance, metrics, results
from runners.analyse.load_simulation import DecodeLoad
from runners.profiles.methods import CHAINS

POINT = ["configuration", "engine", "method", "k", "workload", "concurrency"]
LOAD = ["requests", "at_once", "prompt", "output"]  # LoadShape's fields; at_once: C, or the lower cap
COLUMNS = [*POINT, "drafter", *LOAD, "context", "batch", "prefill", "step_ms", "tokens_per_step", "scatter"]
SAME_STEP_S = 0.02  # first tokens of one step reach the client within this


def points(cells: pd.DataFrame, requests: pd.DataFrame, groups: dict[str, str] | None = None) -> pd.DataFrame:
    """One row a point of one engine's plain and of its chained configurations (EAGLE-3, draft model): COLUMNS.

    groups: configuration -> the drafter whose cost it has (crossover.drafters); its own name where none is given.

    step_ms: decode time of a step, TPOT x tokens per step, over the repeats that count; scatter: the standard error of
    its logarithm (NaN with one repeat). context: the prompt and half the answer, in tokens: what a step attends to on
    average. batch, prefill: decode_load. n-gram configurations are left out: their steps are of two kinds
    (with a draft or without).
    """
    good = results.ok(cells)
    good = good[good.method.isin(("none", *CHAINS)) & good.context_tokens.notna()]
    if good.empty:
        return pd.DataFrame(columns=COLUMNS)
    good = good.assign(tpot=metrics.decode_tpot(good, requests))
    lengths = [1.0 if r.method == "none" else acceptance.tokens_per_step(r) for _, r in good.iterrows()]
    good = good.assign(al=lengths, k=good.k.fillna(0)).dropna(subset=["tpot", "al"])
    loads = _decode_loads(good, requests)
    good = good.assign(batch=[load.batch for load in loads], prefill=[load.prefill for load in loads])
    rows = []
    for names, group in good.groupby(POINT, sort=False):
        point = dict(zip(POINT, names, strict=True))
        drafter = (groups or {}).get(point["configuration"], point["configuration"]) if point["k"] else ""
        rows.append(point | {"drafter": drafter} | _means(group))
    return pd.DataFrame(rows, columns=COLUMNS)


def _means(group: pd.DataFrame) -> dict[str, float]:
    """The figures of COLUMNS for one point, over its repeats."""
    prompt, output = group.context_tokens.mean(), group.output_tokens_per_request.mean()
    # Geometric means: a ratio of two points is then the mean of their repeats' ratios.
    logs = np.log(group.tpot * group.al)
    return {
        "requests": group.requests.mean(),
        "at_once": group.concurrency.astype(float).where(group.capped_at.isna(), group.capped_at).mean(),
        "prompt": prompt,
        "output": output,
        "context": prompt + output / 2,
        "batch": group.batch.mean(),
        "prefill": group.prefill.mean(),
        "step_ms": float(np.exp(logs.mean())),
        "tokens_per_step": group.al.mean(),
        "scatter": float(logs.std() / np.sqrt(len(logs))),
    }


def _decode_loads(cells: pd.DataFrame, requests: pd.DataFrame) -> list[DecodeLoad]:
    """decode_load of each cell; C (or the cap) and no prefill where its requests are not at hand."""
    good = requests[requests.error.isna()] if "error" in requests else requests
    columns = ["first_token_s", "last_token_s", "prompt_tokens", "output_tokens"]
    known = all(c in good for c in columns)
    by_key = {key: part[columns].dropna() for key, part in good.groupby("key")} if known else {}
    loads = []
    for r in cells.itertuples():
        part = by_key.get(r.key)
        if part is None or part.empty:
            loads.append(DecodeLoad(float(r.concurrency if pd.isna(r.capped_at) else r.capped_at), 0.0))
        else:
            loads.append(decode_load(*(part[c].to_numpy(float) for c in columns), r.al))
    return loads


def decode_load(first_token_s, last_token_s, prompt_tokens, output_tokens, accept_length: float) -> DecodeLoad:
    """What decoding requests shared, from their figures: float arrays [requests] in seconds, seconds, tokens, tokens.

    The prompt of another request counts for one that was decoding when the other's first token came. It counts in the
    request's last step too, which brings both tokens at once. Two prompts that were read together bring their first
    tokens at the same moment: neither counts for the other.
    """
    decode_s = last_token_s - first_token_s
    if not (decode_s > 0).any():
        return DecodeLoad(float(len(decode_s)), 0.0)
    both_end = last_token_s[:, None].clip(max=last_token_s[None])
    both_begin = first_token_s[:, None].clip(min=first_token_s[None])
    shared_s = (both_end - both_begin).clip(min=0)  # [requests, requests]: seconds that two of them decode together
    batch = shared_s.sum() / decode_s.sum()
    after_mine = first_token_s[None] > first_token_s[:, None] + SAME_STEP_S
    read_meanwhile = after_mine & (first_token_s[None] < last_token_s[:, None] + SAME_STEP_S)
    steps = (output_tokens - 1).sum() / accept_length
    prefill = float((read_meanwhile * prompt_tokens[None]).sum() / steps) if steps > 0 else 0.0
    return DecodeLoad(float(batch), prefill)
