"""The prompts of the drafter's training text; the target itself answers them (on-policy, generate_answers.py).

An EAGLE-3 drafter learns to guess what *this* target writes (Li et al. 2025, section 4), so the INT4 target answers,
through llama.cpp's server. Prompts are composed with a seed from data/corpus/prompts.yaml. A subject is either for
training or held out, so that held-out figures are about new subjects.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.core import files
from runners.core.errors import UserError
from runners.core.paths import DATA

FOLDER = DATA / "corpus"
SOURCE = FOLDER / "prompts.yaml"
HELD_OUT_SHARE = 0.1
IN_VAIN = 20_000  # draws in a row that gave no new prompt: the source has no more of this kind
# How many prompts of each kind: mostly requests for new text, as in the `chat` set, and some of each other kind.
SHARES = {"request": 0.66, "code": 0.10, "sum": 0.06, "edit": 0.12, "code-edit": 0.06}


@dataclass(frozen=True)
class CorpusPrompt:
    """One composed prompt. `part` is "train" or "held-out"; all prompts of a subject are in the same part."""

    id: str
    kind: str
    subject: str
    part: str
    text: str


def compose(count: int, seed: int = 0, source: Path = SOURCE) -> list[CorpusPrompt]:
    """`count` different prompts in a shuffled order, the same for the same seed and source.

    Raises UserError when the source is missing or holds too few combinations.
    """
    words = _read(source)
    makers = {
        "request": _request,
        "code": _code,
        "sum": _sum,
        "edit": _edit,
        "code-edit": _code_edit,
    }
    found: list[CorpusPrompt] = []
    wanted = {kind: round(count * share) for kind, share in SHARES.items()}
    wanted["request"] += count - sum(wanted.values())
    for kind, n in wanted.items():
        rng = random.Random(f"{seed} {kind}")  # a kind's prompts do not depend on the other kinds
        held_out = _held_out(kind, words, rng)
        texts: set[str] = set()
        in_vain = 0
        while len(texts) < n:
            in_vain += 1
            if in_vain > IN_VAIN:
                raise UserError(f"{source} has too few combinations for {n} prompts of kind {kind}; lower `prompts`.")
            subject, text = makers[kind](words, rng)
            if text in texts:
                continue
            texts.add(text)
            in_vain = 0
            part = "held-out" if subject in held_out else "train"
            found.append(CorpusPrompt(f"{kind}-{len(texts):04d}", kind, subject, part, text))
    random.Random(seed).shuffle(found)
    return found


def _read(source: Path) -> dict[str, Any]:
    if not source.is_file():
        raise UserError(f"No {source}; restore it, the training prompts are composed from it.")
    return files.read_yaml(source, source.name)


def _subjects(kind: str, words: dict[str, Any]) -> list[str]:
    """The subjects of a kind. The parts are split by subject, what a prompt is about, and never by its phrasing."""
    return {
        "request": [s for group in words["subjects"].values() for s in group],
        "code": words["functions"],
        "sum": words["sums"],
        "edit": words["things"],
        "code-edit": words["code_passages"],
    }[kind]


def _held_out(kind: str, words: dict[str, Any], rng: random.Random) -> set[str]:
    subjects = _subjects(kind, words)
    return set(rng.sample(subjects, max(1, round(len(subjects) * HELD_OUT_SHARE))))


def _request(words: dict[str, Any], rng: random.Random) -> tuple[str, str]:
    subject = rng.choice(_subjects("request", words))
    return subject, rng.choice(words["requests"]).format(s=subject)


def _code(words: dict[str, Any], rng: random.Random) -> tuple[str, str]:
    subject = rng.choice(words["functions"])
    return subject, rng.choice(words["code_requests"]).format(f=subject, language=rng.choice(words["languages"]))


def _sum(words: dict[str, Any], rng: random.Random) -> tuple[str, str]:
    subject = rng.choice(words["sums"])
    drawn = {"a": rng.randrange(40, 400), "b": rng.randrange(12, 90), "c": rng.randrange(2, 12)}
    return subject, subject.format(**drawn)


def _edit(words: dict[str, Any], rng: random.Random) -> tuple[str, str]:
    subject = rng.choice(words["things"])
    one, other = rng.sample(words["names"], 2)
    drawn = {
        "n": one,
        "thing": subject,
        "place": rng.choice(words["places"]),
        "h": rng.choice(("seven", "half past eight", "noon", "four")),
        "k": rng.randrange(3, 40),
    }
    passage = " ".join(s.format(**drawn) for s in rng.sample(words["sentences"], rng.randrange(3, 6)))
    return subject, rng.choice(words["edits"]).format(n=one, m=other) + "\n\n" + passage


def _code_edit(words: dict[str, Any], rng: random.Random) -> tuple[str, str]:
    subject = rng.choice(words["code_passages"])
    one, other = rng.sample(words["variables"], 2)
    return subject, rng.choice(words["code_edits"]).format(v=one, w=other) + "\n\n" + subject.format(v=one)
