"""What acceptance figures mean: definitions in one place, all from raw counts.

A chain drafts K tokens a verification step. F steps, N drafted and A accepted tokens are counted; every
rate is a ratio of sums over cells, never a mean of rates. SGLang's `num_draft_tokens` D counts the bonus
position: D = K + 1.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from runners.analyse import results

BY = ["configuration", "engine", "method", "k"]
COUNTS = ["steps", "drafted", "accepted", "output_tokens", "requests"]
# Engines that count a step's accepted tokens before they cut the answer at its limit. vLLM:
# v1/core/sched/scheduler.py, update_from_output takes its statistics before check_stop. llama.cpp never drafts
# past the limit.
COUNTS_CUT_OFF = {"vllm"}
# A random drafter hits by luck about once in a vocabulary; this is far above luck and far below any trained drafter.
FLOOR_ACCEPTANCE = 0.005


def _ratio(a: float, b: float) -> float:
    return float(a) / float(b) if pd.notna(a) and pd.notna(b) and b else float("nan")


def accept_length(steps: float, accepted: float) -> float:
    """AL = 1 + accepted / steps, tokens per verification step, the target's own token included; NaN without
    steps.
    """
    return 1 + _ratio(accepted, steps)


def reads_one(steps: float, accepted: float) -> bool:
    """Whether a log's two decimals say 1.00: of some 200 steps not one draft accepted. A chance hit in thousands, a
    zero drafted where the text ends, is none the less a drafter that does nothing. False without steps.
    """
    return f"{accept_length(steps, accepted):.2f}" == "1.00"


def draft_acceptance(drafted: float, accepted: float) -> float:
    """accepted / drafted, a share; for a full chain (AL - 1) / K. NaN if nothing was drafted."""
    return _ratio(accepted, drafted)


def survival(accepted_per_position: Sequence[float], steps: float) -> list[float]:
    """Share of steps that kept position 1, 2, ...: what engines print per position (unconditional)."""
    return [_ratio(a, steps) for a in accepted_per_position]


def conditional(accepted_per_position: Sequence[float], steps: float) -> list[float]:
    """Chance that a position is kept given that the one before was: neighbour ratios; NaN after a zero."""
    return [_ratio(a, b) for a, b in zip(accepted_per_position, [steps, *accepted_per_position], strict=False)]


def overshoot(steps: float, accepted_per_position: Sequence[float], every: float) -> float:
    """Tokens that a request's last step yields beyond its output limit, on average.

    The renewal theorem's (E[L^2] / E[L] - 1) / 2 for the lengths L of `every` decode steps, of which `steps` had a
    draft and the others yield one token.
    """
    kept = [steps, *accepted_per_position]
    lengths = [(i + 1, a - b) for i, (a, b) in enumerate(zip(kept, [*accepted_per_position, 0], strict=True))]
    lengths.append((1, max(0.0, every - steps)))
    total = sum(n for _, n in lengths)
    mean, square = (sum(n * length**p for length, n in lengths) / total if total else 1.0 for p in (1, 2))
    return (square / mean - 1) / 2


def decode_steps(row: pd.Series | dict) -> float:
    """Target passes of the decode phase, those without a draft included, from a row of counts.

    The first token of a request comes from its prefill; each decode step yields its accepted drafts plus one. So steps
    = output tokens - requests - accepted, which an engine's own count is not: it leaves out n-gram steps that found
    nothing to propose. An engine in `COUNTS_CUT_OFF` makes that too small by the accepted tokens it then threw away:
    for a drafter model its own count is the better one, for n-gram they are estimated (`overshoot`).
    """
    plain = row["output_tokens"] - row["requests"] - row["accepted"]
    positions = row["accepted_per_position"]
    if row["method"] == "ngram" and row["engine"] in COUNTS_CUT_OFF and isinstance(positions, list):
        every = max(plain, row["steps"])
        for _ in range(20):  # the share of undrafted steps depends on the answer; this settles in a few rounds
            every = max(row["steps"], plain + row["requests"] * overshoot(row["steps"], positions, every))
        return float(every)
    return float(max(plain, row["steps"]))


def tokens_per_step(row: pd.Series | dict) -> float:
    """Output tokens per decode step: what a step really yields, undrafted steps and cut-off tokens allowed for.

    Equal to the accept length for a drafter model, less what the output limit cuts off; below it for n-gram.
    """
    return _ratio(row["output_tokens"] - row["requests"], decode_steps(row))


def sglang_rate_old(al: float, num_draft_tokens: float) -> float:
    """SGLang's accept rate up to 0.5.10.post1: (A + F) / (F D) = AL / D. Counts the bonus token: its floor is
    1 / D.
    """
    return _ratio(al, num_draft_tokens)


def sglang_rate_new(al: float, num_draft_tokens: float) -> float:
    """SGLang's accept rate from 0.5.11: A / (F (D - 1)) = (AL - 1) / (D - 1). Its floor is 0."""
    return _ratio(al - 1, num_draft_tokens - 1)


def expected_accept_length(a: float, k: int) -> float:
    """E[AL] = (1 - a^(K+1)) / (1 - a) if each draft is accepted with chance a, independently (Leviathan et
    al., 2023).
    """
    return float(sum(a**i for i in range(k + 1)))


def acceptance_for(al: float, k: int) -> float:
    """The chance a that would give accept length `al` at K: the inverse of `expected_accept_length`; NaN
    outside [1, K+1].
    """
    if not 1 <= al <= k + 1:
        return float("nan")
    if al in (1, k + 1):
        return float(al == k + 1)
    return float(brentq(lambda a: expected_accept_length(a, k) - al, 0, 1))


def add_positions(lists: Sequence) -> list[int] | None:
    """Element-wise sum of accepted_per_position of several cells, short lists padded with zeros; None if
    there is none.
    """
    known = [p for p in lists if isinstance(p, list | tuple | np.ndarray)]
    if not known:
        return None
    return [int(sum(p[i] for p in known if i < len(p))) for i in range(max(map(len, known)))]


def sums(cells: pd.DataFrame) -> dict:
    """The counts of several cells as one: COUNTS and accepted_per_position; a cell without counts is left out."""
    known = cells[cells.steps.notna()]
    positions = add_positions(list(known.accepted_per_position))
    return known[COUNTS].sum(min_count=1).to_dict() | {"accepted_per_position": positions}


def pooled(cells: pd.DataFrame, by: Sequence[str] = ("workload",)) -> pd.DataFrame:
    """One row per speculative configuration (and `by`): summed counts of ok cells and all that follows from
    them.

    Counts: steps, drafted, accepted, accepted_per_position, output_tokens, requests. Derived: accept_length,
    draft_acceptance, tokens_per_step, drafted_share (of decode steps), survival, conditional,
    sglang_old, sglang_new (at D = K + 1), iid_acceptance.
    """
    derived = [
        "accept_length",
        "draft_acceptance",
        "tokens_per_step",
        "drafted_share",
        "survival",
        "conditional",
        "sglang_old",
        "sglang_new",
        "iid_acceptance",
    ]
    good = results.ok(cells)
    good = good[good.method != "none"]
    rows = []
    for names, group in good.groupby([*BY, *by], sort=False, dropna=False):
        row = dict(zip([*BY, *by], names, strict=True)) | sums(group)
        rows.append(row | _derived(row))
    frame = pd.DataFrame(rows, columns=[*BY, *by, *COUNTS, "accepted_per_position", *derived])
    return results.ordered(frame, list(by)) if len(frame) else frame


def _derived(row: dict) -> dict:
    al = accept_length(row["steps"], row["accepted"])
    positions, d = row["accepted_per_position"] or [], row["k"] + 1
    k = int(row["k"]) if pd.notna(row["k"]) else 0
    return {
        "accept_length": al,
        "draft_acceptance": draft_acceptance(row["drafted"], row["accepted"]),
        "tokens_per_step": tokens_per_step(row),
        "drafted_share": _ratio(row["steps"], decode_steps(row)),
        "survival": survival(positions, row["steps"]),
        "conditional": conditional(positions, row["steps"]),
        "sglang_old": sglang_rate_old(al, d),
        "sglang_new": sglang_rate_new(al, d),
        "iid_acceptance": acceptance_for(al, k) if k else float("nan"),
    }


def positions(pool: pd.DataFrame) -> pd.DataFrame:
    """Long form of `pooled`: configuration, method, workload, position (from 1), survival, conditional."""
    rows = [
        {"configuration": r.configuration, "engine": r.engine, "method": r.method, "workload": r.workload,
         "position": i, "survival": s, "conditional": c}
        for r in pool.itertuples()
        for i, (s, c) in enumerate(zip(r.survival, r.conditional, strict=True), start=1)
    ]  # fmt: skip
    return pd.DataFrame(
        rows, columns=["configuration", "engine", "method", "workload", "position", "survival", "conditional"]
    )


def control(cells: pd.DataFrame) -> pd.DataFrame:
    """Pooled rows of drafter models of which the target accepted nothing, or a stray token: the controls."""
    pool = pooled(cells, by=())
    return pool[(pool.method != "ngram") & (pool.draft_acceptance < FLOOR_ACCEPTANCE)]
