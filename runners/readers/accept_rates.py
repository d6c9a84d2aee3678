"""What engines mean by "accept rate", and how to get accepted/drafted from each.

vLLM and llama.cpp print accepted/drafted. SGLang printed accept_len/num_draft_tokens up to 0.5.10.post1, the bonus
token counted in; from 0.5.11 on it prints (accept_len - 1)/(num_draft_tokens - 1). With a chain, num_draft_tokens is
the number of draft tokens plus one, so only the later figure is accepted/drafted.
"""

from collections.abc import Iterable

ACCEPTED_OVER_DRAFTED = "accepted/drafted"
BONUS_COUNTED = "accept_len/num_draft_tokens"
LENGTH_LESS_ONE = "(accept_len-1)/(num_draft_tokens-1)"
JUDGED_ALONE = "accepted/drafted, each token judged alone"  # vLLM up to 0.7: behind a rejected one too
UNKNOWN_DEFINITION = "unknown"


def _fits(length: float, rate: float, d: int) -> tuple[bool, bool]:
    """Whether the old and whether the new definition explain a printed pair, with d = num_draft_tokens."""
    # Both figures are rounded to two decimals: the rate is off by up to 0.005, the length's 0.005 is divided by d. The
    # last digit of 0.0051 is for floating point.
    old = abs(rate - length / d) <= 0.0051 + 0.005 / d
    new = d > 1 and abs(rate - (length - 1) / (d - 1)) <= 0.0051 + 0.005 / (d - 1)
    return old, new


def infer(pairs: Iterable[tuple[float, float]], num_draft_tokens: int | None = None) -> tuple[str, int | None]:
    """(what the printed rate means, num_draft_tokens), from (accept length, rate) pairs of one server.

    With num_draft_tokens unknown, every value from 2 to 64 is compared with all pairs. UNKNOWN_DEFINITION when both
    meanings stay possible (2.00 and 0.50 can be 4 old or 3 new) or neither does. The number is None when several stay
    possible, or when the given one explains no pair.
    """
    candidates = [num_draft_tokens] if num_draft_tokens else range(2, 65)
    old, new = set(candidates), set(candidates)
    for length, rate in set(pairs):
        fits = {d: _fits(length, rate, d) for d in old | new}
        old = {d for d in old if fits[d][0]}
        new = {d for d in new if fits[d][1]}
    left = old | new
    number = left.pop() if len(left) == 1 else None
    if bool(old) == bool(new):
        return UNKNOWN_DEFINITION, number
    return BONUS_COUNTED if old else LENGTH_LESS_ONE, number


def recomputed(length: float, rate: float | None, definition: str, d: int | None) -> float | None:
    """accepted/drafted of a chain from a printed pair; d is num_draft_tokens, draft tokens plus one.

    None where neither d nor the meaning of the printed rate is known.
    """
    if d and d > 1:
        return (length - 1) / (d - 1)
    return rate if definition == LENGTH_LESS_ONE else None  # the same quantity, to two decimals
