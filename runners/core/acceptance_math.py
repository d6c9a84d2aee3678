"""Acceptance figures from raw counts: one definition of each, for every room.

S verification steps with a draft, D drafted tokens, A accepted drafted tokens, K drafts a step, AL accept length.
SGLang's own `num_draft_tokens` counts the bonus position too: on a chain it is K + 1.

It stands in `core` because the gates need the accept length as much as the chapters do, and it needs neither pandas nor
an engine. Rates of several cells are ratios of sums, never means of rates: sum the counts first.
"""

from collections.abc import Sequence

NAN = float("nan")


def ratio(numerator: float | None, denominator: float | None) -> float:
    """numerator / denominator; NaN where either is unknown or the denominator is 0."""
    if numerator is None or not denominator:
        return NAN
    return float(numerator) / float(denominator)


def accept_length(steps: float | None, accepted: float | None) -> float:
    """AL = 1 + A / S: tokens per verification step, the target's own token included; NaN without steps."""
    return 1 + ratio(accepted, steps)


def reads_one(steps: float | None, accepted: float | None) -> bool:
    """Whether an engine's log, which has two decimals, would show an accept length of 1.00. False without steps.

    Not `accepted == 0`: a random drafter hits by chance once in thousands of steps, and still does nothing useful.
    """
    return f"{accept_length(steps, accepted):.2f}" == "1.00"


def draft_acceptance(drafted: float | None, accepted: float | None) -> float:
    """A / D, a share of 1; for a chain that always drafts K tokens it is (AL - 1) / K. NaN if nothing was drafted."""
    return ratio(accepted, drafted)


def survival(accepted_per_position: Sequence[float], steps: float | None) -> list[float]:
    """Share of steps that accepted position 1, 2, ...: unconditional, as engines print it."""
    return [ratio(accepted, steps) for accepted in accepted_per_position]


def conditional(accepted_per_position: Sequence[float], steps: float) -> list[float]:
    """Chance that a position is accepted given that the one before it was; NaN after a position with none."""
    before = [steps, *accepted_per_position]
    return [ratio(accepted, previous) for accepted, previous in zip(accepted_per_position, before, strict=False)]


def sglang_rate_old(al: float, num_draft_tokens: float) -> float:
    """SGLang's accept rate up to 0.5.10.post1: (A + S) / (S (K + 1)) = AL / (K + 1).

    It counts the bonus token, so its lowest value is 1 / (K + 1) and not 0.
    """
    return ratio(al, num_draft_tokens)


def sglang_rate_new(al: float, num_draft_tokens: float) -> float:
    """SGLang's accept rate from 0.5.11: A / (S K) = (AL - 1) / K. Its lowest value is 0."""
    return ratio(al - 1, num_draft_tokens - 1)


def expected_accept_length(a: float, k: int) -> float:
    """E[AL] = 1 + a + ... + a^K = (1 - a^(K+1)) / (1 - a), if each draft is accepted with chance a, independently.

    Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", 2023, equation 1.
    """
    return float(sum(a**i for i in range(k + 1)))
