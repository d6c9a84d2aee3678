"""Acceptance of measured cells: pooled counts, decode steps, tokens per step, the controls.

The formulas stand in core/acceptance_math.py, with the symbols: S steps with a draft (column `steps`), D drafted tokens
(`drafted`), A accepted drafted tokens (`accepted`), K drafts a step (`k`), AL accept length. Every rate is a ratio of
sums over cells, never a mean of rates.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from runners.analyse import results
from runners.core.acceptance_math import (
    accept_length,
    conditional,
    draft_acceptance,
    expected_accept_length,
    ratio,
    sglang_rate_new,
    sglang_rate_old,
    survival,
)
from runners.engines.registry import all_engines
from runners.profiles.methods import method

BY = ["configuration", "engine", "method", "k"]
COUNTS = ["steps", "drafted", "accepted", "output_tokens", "requests"]
WINDOWED = "occupancy"  # rows with a window say how full it was
BEGUN = "requests_begun"  # newer rows say in how many requests the counters of a window had a first token
DERIVED = ["accept_length", "draft_acceptance", "tokens_per_step", "drafted_share", "survival", "conditional"]
DERIVED += ["sglang_old", "sglang_new", "iid_acceptance"]
# A random drafter hits by luck about once in a vocabulary; this is far above luck and far below any trained drafter.
FLOOR_ACCEPTANCE = 0.005
# Rounds of the fixed point in `_decode_steps_with_cut_off`. It is solved to the last bit, not to a looser tolerance:
# repeats with the same counts must stay exactly equal, for a bootstrap of three values changes its bounds by 0.3% when
# a tie is broken in the last digit.
MOST_ROUNDS = 20


def _step_lengths(steps: float, accepted_per_position: Sequence[float], decode_steps: float) -> list[tuple[int, float]]:
    """(tokens that a decode step yields, number of such steps): each drafted step 1 to K + 1, each other one 1."""
    reached = [steps, *accepted_per_position]  # steps that accepted at least 0, 1, 2, ... drafts
    beyond = [*accepted_per_position, 0]
    drafted = [(i + 1, a - b) for i, (a, b) in enumerate(zip(reached, beyond, strict=True))]
    return [*drafted, (1, max(0.0, decode_steps - steps))]


def expected_overshoot(steps: float, accepted_per_position: Sequence[float], decode_steps: float) -> float:
    """Tokens that a request's last step yields beyond its output limit, on average.

    The renewal theorem: with L the tokens of a step, the limit falls more often into a long step, in proportion to L,
    and anywhere in it alike. What is left of that step behind the limit is then (E[L^2] / E[L] - 1) / 2 on average.
    """
    lengths = _step_lengths(steps, accepted_per_position, decode_steps)
    total = sum(count for _, count in lengths)
    if not total:
        return 0.0
    mean = sum(count * length for length, count in lengths) / total
    mean_square = sum(count * length**2 for length, count in lengths) / total
    return (mean_square / mean - 1) / 2


def _decode_steps_with_cut_off(
    steps: float, accepted_per_position: Sequence[float], by_tokens: float, requests: float
) -> float:
    """Decode steps where the counts hold accepted tokens that the output limit then cut off.

    Each request's cut-off tokens make the count by tokens too small, by as many steps. How many they are depends on
    the share of steps without a draft, and so on the answer itself: a fixed point.
    """
    estimate = max(by_tokens, steps)
    for _ in range(MOST_ROUNDS):
        cut_off = requests * expected_overshoot(steps, accepted_per_position, estimate)
        before, estimate = estimate, max(steps, by_tokens + cut_off)
        if estimate == before:
            break
    return float(estimate)


def decode_steps(row: pd.Series | dict) -> float:
    """The target's decode steps, those without a draft included, from a row of COUNTS and `accepted_per_position`.

    A request's first token comes from its prefill; each decode step yields its accepted drafts plus one token. So

        decode steps = output tokens - requests - A

    An engine's own count S is less: it leaves out the n-gram steps that found nothing to propose. But an engine with
    `counts_cut_off` also has in A what the output limit cut off afterwards, which makes the difference too small. For a
    drafter model, which drafts in every step, S itself is then the better number; for n-gram the tokens cut off are
    estimated (`expected_overshoot`), so its steps are modelled there and not counted.

    In a cell with a window the server's counters hold the ramp and the cut too, and `output_tokens` does not: the
    server's own tokens take its place. How many requests began is in the row (BEGUN); in older ones, and where steps
    are modelled, every `output_tokens_per_request` of the tokens began one.
    """
    tokens, requests = _counted(row)
    by_tokens = tokens - requests - row["accepted"]
    positions = row["accepted_per_position"]
    if _windowed(row) and method(row["method"]).every_step:
        return float(row["steps"])
    if is_modelled(row["engine"], row["method"]) and isinstance(positions, list):
        return _decode_steps_with_cut_off(row["steps"], positions, by_tokens, requests)
    return float(max(by_tokens, row["steps"]))


def is_modelled(engine: str, drafts_by: str) -> bool:
    """Whether decode steps are modelled and not counted: the engine leaves out steps without a draft, which this method
    has, and its accepted tokens hold those that the output limit cut off.
    """
    known = all_engines().get(engine)  # a ledger outlives an engine that is no longer known
    return known is not None and known.counts_cut_off and method(drafts_by).every_step is False


def tokens_per_step(row: pd.Series | dict) -> float:
    """Output tokens per decode step: what a step really yields, steps without a draft and cut-off tokens allowed for.

    For a drafter model it equals AL, less what the output limit cuts off; for n-gram it is below AL.
    """
    if _windowed(row) and method(row["method"]).every_step:
        return accept_length(row["steps"], row["accepted"])
    tokens, requests = _counted(row)
    return ratio(tokens - requests, decode_steps(row))


def _windowed(row: pd.Series | dict) -> bool:
    return bool(pd.notna(row.get(WINDOWED)))


def _counted(row: pd.Series | dict) -> tuple[float, float]:
    """(output tokens, requests) over the span of the server's counters."""
    tokens, length = row.get("server_output_tokens"), row.get("output_tokens_per_request")
    if not _windowed(row) or tokens is None or length is None or pd.isna(tokens) or pd.isna(length):
        return row["output_tokens"], row["requests"]
    begun = row.get(BEGUN)
    if begun is None or pd.isna(begun) or is_modelled(row["engine"], row["method"]):
        return float(tokens), float(tokens) / float(length)
    return float(tokens), float(begun)


def acceptance_for(al: float, k: int) -> float:
    """The chance a that gives accept length `al` at K drafts: the inverse of `expected_accept_length`.

    NaN where `al` is outside [1, K + 1].
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
    """COUNTS and accepted_per_position summed over cells; a cell without counts is left out of every sum."""
    known = cells[cells.steps.notna()]
    positions = add_positions(list(known.accepted_per_position))
    windowed = WINDOWED in known and known[WINDOWED].notna().any()
    found = known[COUNTS].sum(min_count=1).to_dict() | {"accepted_per_position": positions}
    if windowed:
        found |= {
            WINDOWED: known[WINDOWED].max(),
            "server_output_tokens": known["server_output_tokens"].sum(min_count=1),
        }
        found |= {"output_tokens_per_request": known["output_tokens_per_request"].mean()}
        if BEGUN in known and known[BEGUN].notna().all():
            found[BEGUN] = known[BEGUN].sum()
    return found


def pooled(cells: pd.DataFrame, by: Sequence[str] = ("workload",)) -> pd.DataFrame:
    """One row a speculative configuration (and `by`): counts summed over its ok cells, and what follows from them.

    Columns: BY, `by`, COUNTS, accepted_per_position (list), and DERIVED: accept_length, draft_acceptance (share),
    tokens_per_step, drafted_share (of decode steps), survival and conditional (lists of shares by position),
    sglang_old and sglang_new (shares, at num_draft_tokens = K + 1), iid_acceptance (`acceptance_for`).
    """
    good = results.ok(cells)
    good = good[good.method != "none"]
    rows = []
    for names, group in good.groupby([*BY, *by], sort=False, dropna=False):
        row = dict(zip([*BY, *by], names, strict=True)) | sums(group)
        rows.append(row | _derived(row))
    frame = pd.DataFrame(rows, columns=[*BY, *by, *COUNTS, "accepted_per_position", *DERIVED])
    return results.ordered(frame, list(by)) if len(frame) else frame


def _derived(row: dict) -> dict:
    """DERIVED of one row of summed counts."""
    al = accept_length(row["steps"], row["accepted"])
    positions, num_draft_tokens = row["accepted_per_position"] or [], row["k"] + 1
    k = int(row["k"]) if pd.notna(row["k"]) else 0
    return {
        "accept_length": al,
        "draft_acceptance": draft_acceptance(row["drafted"], row["accepted"]),
        "tokens_per_step": tokens_per_step(row),
        "drafted_share": ratio(row["steps"], decode_steps(row)),
        "survival": survival(positions, row["steps"]),
        "conditional": conditional(positions, row["steps"]),
        "sglang_old": sglang_rate_old(al, num_draft_tokens),
        "sglang_new": sglang_rate_new(al, num_draft_tokens),
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
    by_a_model = pool.method.map(lambda name: bool(method(name).every_step)).astype(bool)
    return pool[by_a_model & (pool.draft_acceptance < FLOOR_ACCEPTANCE)]
