"""The gates of a cell at a temperature above 0: no two answers are equal there, so distributions are compared.

What they cannot see: another model of the same language and length. A drafter cannot change the distribution where
the engine samples rightly; whether it does, only many more answers than a cell holds could tell.
"""

from collections.abc import Sequence

from scipy import stats

from runners.core.acceptance_math import accept_length
from runners.measure.base_answers import Sample
from runners.measure.client import TIMED, Result
from runners.measure.text_gates import bigram_ratio

LEVEL = 0.001  # many cells are judged in a report: a good one fails once in a thousand
ROUNDING = 1e-6


def possible_accept_length(steps: int | None, accepted: int | None, k: int | None) -> str | None:
    """A step of a chain yields one token at least and K + 1 at most."""
    if not steps or accepted is None or k is None:
        return None
    shown = accept_length(steps, accepted)
    if 1 - ROUNDING <= shown <= k + 1 + ROUNDING:
        return None
    return f"the counters show an accept length of {shown:.2f}, which K = {k} cannot give"


def same_lengths(results: Sequence[Result], base: Sequence[Sample], whose: str) -> str | None:
    """Answers that end by themselves are as long as the base's: tokens, by a test of Kolmogorov and Smirnov."""
    mine = [float(r.output_tokens) for r in _whole(results) if r.output_tokens is not None]
    theirs = [float(s.tokens) for s in _of_same_prompts(results, base) if s.tokens is not None]
    return _different(mine, theirs, f"answer lengths differ from {whose}", "tokens")


def same_language(results: Sequence[Result], base: Sequence[Sample], whose: str) -> str | None:
    """Answers repeat themselves as much as the base's: distinct bigrams of each, by the same test."""
    mine = [ratio for r in _whole(results) if (ratio := bigram_ratio(r.text)) is not None]
    theirs = [ratio for s in _of_same_prompts(results, base) if (ratio := bigram_ratio(s.text)) is not None]
    return _different(mine, theirs, f"answers repeat themselves otherwise than {whose}", "distinct bigrams")


def _whole(results: Sequence[Result]) -> list[Result]:
    """Answers in full: a ramp's are of other lengths by design, a cut one has no length of its own."""
    return [r for r in results if r.error is None and r.role == TIMED]


def _of_same_prompts(results: Sequence[Result], base: Sequence[Sample]) -> list[Sample]:
    """Lengths depend on what was asked."""
    asked = {r.prompt_id for r in _whole(results)}
    return [s for s in base if s.prompt_id in asked]


def _different(mine: Sequence[float], theirs: Sequence[float], what: str, unit: str) -> str | None:
    """With some six answers a side or fewer no difference reaches the level: then nothing is said."""
    if not mine or not theirs:
        return None
    p = float(stats.ks_2samp(mine, theirs).pvalue)
    if p >= LEVEL:
        return None
    means = f"mean {sum(mine) / len(mine):.3g} {unit} over {len(mine)} answers, {sum(theirs) / len(theirs):.3g} there"
    return f"{what}: {means} (p = {p:.1g})"
