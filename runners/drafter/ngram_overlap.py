"""Is there anything for an n-gram drafter to copy? How far answers repeat their prompts and themselves, by the ledger.

Counted in words, since a ledger keeps texts and no token ids: a guide to what prompt lookup finds, not its accept
length. Prompt lookup proposes what followed the last words where they stood before, in the prompt or in the answer so
far (vllm/v1/spec_decode/ngram_proposer.py).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.measure.ledger import Ledger
from runners.profiles import prompts

LOOKED_UP = 3  # words that must have stood before
LITTLE = 0.1  # share of an answer's words that a lookup would have proposed rightly


@dataclass(frozen=True)
class Overlap:
    """Over all answers. words: of the answers. proposed: of them, those that a lookup would have guessed at.
    right: guessed rightly. in_prompt: share of the answers' runs of LOOKED_UP words that stand in their prompts.
    """

    words: int
    proposed: int
    right: int
    in_prompt: float


def check(folder: Path) -> Iterator[Finding]:
    """Findings of one configuration's ledger, a set of prompts at a time."""
    found = dict(by_prompts(folder))
    if not found:
        yield Finding("note", "no answers are in the ledger yet: measure the configuration first", "")
    for name, overlap in found.items():
        right = overlap.right / overlap.words
        words = (
            f"{name}: {overlap.in_prompt:.0%} of the runs of {LOOKED_UP} words stand in the prompt; looked up are "
            f"{overlap.proposed / overlap.words:.0%} of all words, {right:.0%} rightly"
        )
        if right < LITTLE:
            yield Finding("warning", words, "n-gram has little to copy here: prompts that are edited or quoted suit it")
        else:
            yield Finding("note", words, "")


def by_prompts(folder: Path) -> Iterator[tuple[str, Overlap]]:
    """(prompt set, its overlap) of the ledger's good cells; sets whose prompts are not here any more are left out."""
    ledger = Ledger(folder)
    sets = {row["key"]: row["workload"] for row in ledger.rows() if row["status"] == "ok"}
    requests = ledger.requests()
    answers = requests[requests["key"].isin(sets) & (requests["text"].fillna("") != "")]
    for name, group in answers.groupby(answers["key"].map(sets)):
        try:
            asked = {p.id: " ".join(m["content"] for m in p.messages) for p in prompts.load(str(name)).prompts}
        except UserError:
            continue
        found = overlap_of(_pairs(group, asked))
        if found is not None:
            yield str(name), found


def _pairs(answers: pd.DataFrame, asked: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(prompt, answer), each prompt once: at temperature 0 its answers are the same."""
    for row in answers.drop_duplicates("prompt_id").itertuples():
        if row.prompt_id in asked:
            yield asked[row.prompt_id], row.text


def overlap_of(pairs: Iterable[tuple[str, str]]) -> Overlap | None:
    """The overlap of (prompt, answer) pairs, all answers together; None where no answer has a word.

    >>> overlap_of([("a b c d e", "a b c d e f")])
    Overlap(words=6, proposed=3, right=2, in_prompt=0.75)
    """
    words = proposed = right = runs = inside = 0
    for prompt, answer in pairs:
        before, said = prompt.split(), answer.split()
        known = {tuple(before[i : i + LOOKED_UP]) for i in range(len(before) - LOOKED_UP + 1)}
        in_answer = [tuple(said[i : i + LOOKED_UP]) for i in range(len(said) - LOOKED_UP + 1)]
        runs, inside = runs + len(in_answer), inside + sum(run in known for run in in_answer)
        guessed, hit = _lookups(before, said)
        words, proposed, right = words + len(said), proposed + guessed, right + hit
    return Overlap(words, proposed, right, inside / runs if runs else 0.0) if words else None


def _lookups(before: list[str], said: list[str]) -> tuple[int, int]:
    """(words that a lookup guesses at, guessed rightly), one word at a time through the answer."""
    text = [*before, *said]
    next_word: dict[tuple[str, ...], str] = {}
    guessed = hit = 0
    for i in range(LOOKED_UP, len(text)):
        run = tuple(text[i - LOOKED_UP : i])
        # Looked up before it is learnt: only what stood earlier counts. The last LOOKED_UP words may be the prompt's.
        if i >= len(before) and run in next_word:
            guessed += 1
            hit += next_word[run] == text[i]
        next_word[run] = text[i]
    return guessed, hit
