"""The gates of a cell's text at temperature 0: is it language, and is it the text that the base answers?

Each cell is judged on its own answers. Answers may be compared with a text that was cut, or be cut themselves: two
texts are compared up to where the shorter one ends. Where the profile says `exact` they must be equal up to there.
Elsewhere numeric ties set them apart (kernels that round activations choose another token at another batch size), so
a floor holds for their mean, and a limit for how many differ from the start.

The published runs (2,681 answers of vLLM in fp32 on two kinds of processor, C = 1 to 16) show not one that differs.
Of llama.cpp's answers, with INT4 kernels, up to 31% are not the base's of the same repeat. book/method.md says how the
floors were set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from scipy import stats

from runners.measure.base_answers import Text
from runners.measure.client import OWN_ENDS, TIMED, Result

WINDOW = 256  # characters that a floor judges: the length of the answers that the floors were set on (64 tokens)
EARLY = 20  # characters: of answers under a wrong accept length 82% differ before it, of good ones at most 17%
MANY_ANSWERS = 16  # fewer answers scatter more: they are held to a lower floor
FEWEST_ANSWERS = 3  # one or two answers with an early tie prove nothing
EARLY_PER_FLOOR = 0.25  # share of answers that may differ early, by how far the floor is below 1: see `early_limit`
CHANCE = 0.001  # of more early differences than `early_limit` in a good cell
CHARACTER_PAIRS = 16  # fewer do not show whether a text without spaces repeats itself


@dataclass(frozen=True)
class Compared:
    """One answer beside the nearest text that was expected of its prompt."""

    prompt_id: str
    equal: int  # characters equal from the start
    of: int  # characters compared

    @property
    def share(self) -> float:
        """Equal characters over those compared, within the first WINDOW; 1.0 where nothing was compared."""
        return min(self.equal, WINDOW) / min(self.of, WINDOW) if self.of else 1.0

    @property
    def differs(self) -> bool:
        return self.equal < self.of

    @property
    def early(self) -> bool:
        """Does it differ within the first EARLY characters?"""
        return self.differs and self.equal < EARLY


def equal_characters(text: str, other: str) -> int:
    """How many characters the two have in common from the start."""
    shorter = min(len(text), len(other))
    return next((i for i in range(shorter) if text[i] != other[i]), shorter)


def compare(prompt_id: str, answer: Text, expected: Text) -> Compared:
    """Compared up to where the shorter one ends; one that ended by itself must not be shorter than the other."""
    equal = equal_characters(answer.text, expected.text)
    shorter, longer = sorted([answer, expected], key=lambda t: len(t.text))
    # No text at all is not the beginning of a text.
    return Compared(prompt_id, equal, len(longer.text if shorter.ended or not shorter.text else shorter.text))


def compare_all(results: Sequence[Result], expected: Mapping[str, Sequence[Text]]) -> list[Compared]:
    """Each answer that has an expected text (`expected`: prompt id -> texts), beside the nearest of them.

    The nearest: INT4 kernels answer one prompt differently at another batch size, so a base has more than one right
    answer of its own. A cut answer too short to tell anything is left out, unless it differs.
    """
    found = []
    for result in results:
        texts, in_full = expected.get(result.prompt_id), result.role == TIMED
        # The end of a text is where a character that was cut in two stands as U+FFFD: that is no difference.
        answer = Text(result.text if in_full else result.text.rstrip("\ufffd"), result.finish_reason in OWN_ENDS)
        if result.error is not None or not texts or not (in_full or answer.text):
            continue
        nearest = max((compare(result.prompt_id, answer, t) for t in texts), key=lambda c: (c.share, c.of))
        if in_full or nearest.differs or nearest.of >= EARLY:
            found.append(nearest)
    return found


def exact_text(compared: Sequence[Compared], whose: str) -> str | None:
    """Every answer is equal to the expected one, as far as both go."""
    other = [c for c in compared if c.differs]
    if not other:
        return None
    first = min(other, key=lambda c: c.equal)
    return (
        f"{len(other)} of {len(compared)} answers differ from {whose}, which this engine must repeat exactly: "
        f"first {first.prompt_id}, at character {first.equal + 1}"
    )


def same_text(compared: Sequence[Compared], floor: float, whose: str) -> str | None:
    """Answers are equal up to numeric ties: their mean share is not below the floor, and few differ from the start.

    floor: for MANY_ANSWERS or more; fewer scatter more, as the root of their number (`floor_of`).
    """
    n = len(compared)
    if n < FEWEST_ANSWERS:
        return None
    early = sum(c.early for c in compared)
    # A mean hides a part of the answers that is garbage: one broken slot among sixteen good ones.
    if early > early_limit(n, floor):
        return f"{early} of {n} answers differ from {whose} within the first {EARLY} characters"
    share, limit = sum(c.share for c in compared) / n, floor_of(n, floor)
    if share < limit:
        return f"answers differ from {whose}: equal prefix {share:.2f} over {n} answers, floor {limit:.2f}"
    return None


def mean_share(compared: Sequence[Compared]) -> float | None:
    """Mean share of equal prefix over the answers; None without one."""
    return sum(c.share for c in compared) / len(compared) if compared else None


def floor_of(answers: int, floor: float) -> float:
    """The floor of the mean share of that many answers.

    >>> floor_of(16, 0.5), floor_of(4, 0.5)
    (0.5, 0.25)
    """
    return floor * sqrt(min(1.0, answers / MANY_ANSWERS))


def early_limit(answers: int, floor: float) -> int:
    """How many of the answers may differ early: more have a chance below CHANCE where a good cell's share holds.

    That share is taken as EARLY_PER_FLOOR of what the floor lacks to 1: with a floor of 0.5 one answer in eight.
    """
    return int(stats.binom.ppf(1 - CHANCE, answers, EARLY_PER_FLOOR * (1 - floor)))


def bigram_ratio(text: str) -> float | None:
    """Distinct neighbouring word pairs over all pairs; 1: no repetition. None below four pairs, too few to tell."""
    return _distinct_pairs(text.split(), 4)


def _distinct_pairs(parts: Sequence[str], fewest: int) -> float | None:
    pairs = list(zip(parts, parts[1:], strict=False))
    return len(set(pairs)) / len(pairs) if len(pairs) >= fewest else None


def distinct_bigrams(texts: Sequence[str]) -> float | None:
    """`bigram_ratio` averaged over the answers. Where none has enough words (a language without spaces, the call of a
    tool), the same of neighbouring characters; None where there are too few of those too.
    """
    ratios = [bigram_ratio(text) for text in texts]
    if not any(ratio is not None for ratio in ratios):
        ratios = [_distinct_pairs("".join(text.split()), CHARACTER_PAIRS) for text in texts]
    known = [ratio for ratio in ratios if ratio is not None]
    return sum(known) / len(known) if known else None


def language(ratio: float | None, floor: float) -> str | None:
    """Output is language, not a loop: a loop of two tokens inflates acceptance."""
    if ratio is None:
        return "the answers hold no words to judge"
    return f"answers repeat themselves: distinct bigrams {ratio:.2f}, floor {floor:.2f}" if ratio < floor else None
