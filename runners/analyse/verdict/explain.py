"""Why a point pays or loses, in words made from its counts and its step cost, and what would change the answer.

A point pays when the whole interval of its output throughput over the same engine's base lies above 1 + the profile's
practical margin; it loses when it lies below 1 - margin; where it lies between the two there is no difference; anything
else is undecided (inference.Estimate.answer).
"""

import pandas as pd

from runners.analyse import acceptance
from runners.analyse.inference import NO, NO_DIFFERENCE, YES
from runners.core import format

# No public EAGLE-3 drafter has more of its drafts accepted, each given those before it (accept length 3.4 at K = 3).
BEST_CHANCE = 0.85


def kind(row: dict, eager: bool = False) -> str:
    """What makes a losing point lose, in a word or two; "" where it does not lose or r is unknown.

    row: a row of step_cost.step_costs with `pays`. The kinds, in the order in which they are tried:
    eager fallback: the engine captured graphs without speculation and none with it.
    cap: a cap on running requests, so both sides served different batches.
    capacity lost: fewer requests ran at once than in base, without a cap: the drafter took their memory.
    outside decoding: decoding gains (AL > r), prefill and queueing lose more.
    acceptance: a better drafter would pay, of a quality that exists (BEST_CHANCE).
    step cost: break-even is beyond any drafter we know, or beyond a perfect one.
    """
    if row["pays"] != NO or pd.isna(row["step_cost"]):
        return ""
    if eager:
        return "eager fallback"
    if pd.notna(row["capped_at"]):
        return "cap"
    if pd.notna(row["running"]) and pd.notna(row["base_running"]) and row["running"] < row["base_running"]:
        return "capacity lost"
    if row["tokens_per_step"] > row["step_cost"]:
        return "outside decoding"
    # NaN beyond K + 1, the accept length of a perfect drafter: then the comparison is False.
    needed = acceptance.acceptance_for(row["step_cost"], int(row["ceiling"]) - 1)
    return "acceptance" if needed <= BEST_CHANCE else "step cost"


def cause(row: dict, eager: bool = False) -> str:
    """Why a point pays or not, from its counts and its step cost; a losing one begins with its `kind`."""
    loss = kind(row, eager)
    return f"{loss}: {_why(row)}" if loss else _why(row)


def _why(row: dict) -> str:
    length, cost = row["tokens_per_step"], row["step_cost"]
    if pd.isna(cost):
        return format.NOT_MEASURED
    if not row["drafted"]:
        text = f"nothing was drafted; a step costs {cost:.2f} plain steps"
    elif row["accepted"] < acceptance.FLOOR_ACCEPTANCE * row["drafted"]:
        counts = f"{row['accepted']:,.0f} of {row['drafted']:,.0f} drafted"
        next_to = "next to " if row["accepted"] else ""
        text = f"{next_to}nothing accepted ({counts}); a step costs {cost:.2f} plain steps"
    else:
        relation = "above" if length > cost else "below"
        relation = "at" if f"{length:.2f}" == f"{cost:.2f}" else relation
        text = f"tokens per step {length:.2f} {relation} break-even {cost:.2f}"
        if (length > cost) == (row["pays"] == NO) and row["pays"] in (YES, NO):
            text += "; prefill and queueing decide against what decode says"
    if pd.notna(row["capped_at"]):
        text += f"; not like for like: capped at {row['capped_at']:.0f} running requests"
    elif pd.notna(row["running"]) and row["running"] < row["base_running"]:
        text += f"; {row['running']:.0f} requests ran at once, {row['base_running']:.0f} without speculation"
    return text


def flip(row: dict) -> str:
    """What would change the answer: the accept length, or the step cost, on the other side of break-even."""
    length, cost, ceiling = row["tokens_per_step"], row["step_cost"], row["ceiling"]
    if pd.isna(cost) or pd.isna(length):
        return "a measurement"
    if row["pays"] == YES and length > cost:
        return f"fewer than {cost:.2f} tokens per step, or a step that costs more than {length:.2f}"
    if row["pays"] == YES:
        return "a look outside decoding: throughput gains although decoding does not"
    if row["pays"] == NO_DIFFERENCE:
        return f"more or less than {cost:.2f} tokens per step: the two sides are level"
    if length > cost:
        doubt = "more starts: the interval is as wide as the difference"
        return "less time outside decoding, which itself gains" if row["pays"] == NO else doubt
    if cost >= ceiling:
        return f"only a cheaper step: even a perfect drafter yields {ceiling:.0f} tokens at this K"
    if row["method"] == "ngram":
        return f"text that repeats more: tokens per step {length:.2f} → {cost:.2f}" + _cheaper(length, cost)
    now, then = (acceptance.acceptance_for(max(v, 1.0), int(ceiling) - 1) for v in (length, cost))
    chances = f" (each draft accepted with chance {now:.0%} → {then:.0%})"
    return f"accept length {length:.2f} → {cost:.2f}{chances}" + _cheaper(length, cost)


def _cheaper(length: float, cost: float) -> str:
    # Below 1 a speculative step would have to be cheaper than a plain one, which it contains.
    if length <= 1.005:
        return ""
    less = 1 - (length - 1) / (cost - 1)  # of what drafting and verifying add to a plain step
    return f"; or drafting and verifying {less:.0%} cheaper (a step of {cost:.2f} → {length:.2f} plain ones)"
