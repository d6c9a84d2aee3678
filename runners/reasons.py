"""Why a point pays or loses, in words made from its counts and its step cost, and what would turn it.

A point pays when its output throughput over the same engine's base lies above 1 with its whole interval and
by at least the profile's practical margin; it loses when it lies below in the same sense; a difference whose
interval stays inside the margin is none; anything else is undecided.
"""

import pandas as pd

from runners import acceptance, tables
from runners.intervals import Interval

MARGIN = 0.03
YES, NO, NONE, UNDECIDED = "yes", "no", "no difference", "undecided"


def pays(ratio: Interval, margin: float = MARGIN) -> str:
    """yes, no, no difference or undecided, for a speed-up with its interval."""
    if pd.isna(ratio.lo):
        return UNDECIDED
    if 1 - margin <= ratio.lo and ratio.hi <= 1 + margin:
        return NONE
    if abs(ratio.point - 1) < margin:
        return UNDECIDED
    return {1: YES, -1: NO, 0: UNDECIDED}[ratio.side]


def cause(row: dict) -> str:
    """Why a point pays or not, from its counts and its step cost."""
    length, cost = row["tokens_per_step"], row["step_cost"]
    if pd.isna(cost):
        return tables.NOT_MEASURED
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
    return text


def flip(row: dict) -> str:
    """What would turn the answer: the accept length, or the step cost, on the other side of break-even."""
    length, cost, ceiling = row["tokens_per_step"], row["step_cost"], row["ceiling"]
    if pd.isna(cost) or pd.isna(length):
        return "a measurement"
    if row["pays"] == YES and length > cost:
        return f"fewer than {cost:.2f} tokens per step, or a step that costs more than {length:.2f}"
    if row["pays"] == YES:
        return "a look outside decoding: throughput gains although decoding does not"
    if row["pays"] == NONE:
        return f"more or less than {cost:.2f} tokens per step: the two sides are level"
    if length > cost:
        doubt = "more repeats: the interval is as wide as the difference"
        return "less time outside decoding, which itself gains" if row["pays"] == NO else doubt
    if cost >= ceiling:
        return f"only a cheaper step: even a perfect drafter yields {ceiling:.0f} tokens at this K"
    if row["method"] == "ngram":
        return f"text that repeats more: over {cost:.2f} tokens per step" + _cheaper(length)
    chance = acceptance.acceptance_for(cost, int(ceiling) - 1)
    return f"an accept length over {cost:.2f}, each draft accepted with chance {chance:.0%}" + _cheaper(length)


def _cheaper(length: float) -> str:
    # Below 1 a speculative step would have to be cheaper than a plain one, which it contains.
    return f"; or a step cost under {length:.2f}" if length > 1.005 else ""
