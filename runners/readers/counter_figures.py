"""What an engine's counts say: accept length, draft acceptance, tokens per step over all decode steps.

Engines count only steps that had a draft. With an n-gram drafter most steps have none, so 1 + accepted / steps tells
how good the drafts were, and not what a decode step yields. That follows from the output tokens: each decode step
yields its accepted drafts plus one token, and a request's first token comes from its prefill. So

    decode steps = output tokens - requests - accepted
"""

from dataclasses import dataclass

from runners.readers.records import Counters

# Where requests are not counted, the first token of each looks like a step without a draft. A drafter model drafts in
# every step: with answers of ten tokens or more its share of steps stays above this.
EVERY_STEP = 0.8


@dataclass(frozen=True)
class Figures:
    """Derived figures; None for each that the counts do not tell.

    accept_length: tokens per step with a draft, 1 + accepted / steps. draft_acceptance: accepted / drafted, the bonus
    token not counted. per_position: share of steps with a draft that accepted position 1, 2, ... tokens_per_step: over
    all decode steps; drafted_share: of these, the share that had a draft. k: drafted tokens per step with a draft.
    """

    accept_length: float | None = None
    draft_acceptance: float | None = None
    per_position: list[float] | None = None
    tokens_per_step: float | None = None
    drafted_share: float | None = None
    k: float | None = None


def figures(c: Counters) -> Figures:
    """The figures of counts since the server's start, or of an interval."""
    accepted = c.accepted
    if accepted is None and c.steps and c.output_tokens is not None:
        # Steps are counted and accepted tokens are not: a drafter that drafts in every step.
        drafts = c.output_tokens - (c.requests or 0) - c.steps
        accepted = drafts if drafts >= 0 else None
    length = 1 + accepted / c.steps if c.steps and accepted is not None else None
    per_step, share = _over_all_steps(c, accepted, length)
    return Figures(
        accept_length=length,
        draft_acceptance=c.accepted / c.drafted if c.drafted and c.accepted is not None else None,
        per_position=[n / c.steps for n in c.accepted_per_position] if c.steps and c.accepted_per_position else None,
        tokens_per_step=per_step,
        drafted_share=share,
        k=c.drafted / c.steps if c.steps and c.drafted else None,
    )


def _over_all_steps(c: Counters, accepted: int | None, length: float | None) -> tuple[float | None, float | None]:
    """(tokens per decode step, share of decode steps that had a draft)."""
    if c.output_tokens is None or accepted is None or c.steps is None:
        return length, None
    decoded = c.output_tokens - (c.requests or 0)
    plain = decoded - accepted  # decode steps, if every one of them is counted in the tokens
    if plain <= 0 or not decoded:
        return length, None
    share = min(1.0, c.steps / plain)
    # Counts of tokens that an output limit cut off make the share a little too large, never too small.
    if length is not None and c.requests is None and share >= EVERY_STEP:
        return length, None
    return (decoded / plain if share < 1 else length), share
