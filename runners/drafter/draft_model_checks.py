"""Does a draft model fit its target? Vocabulary, tokenizer and size: it is a whole model, and drafts tokens alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runners.core import json_text
from runners.core.checkpoint import Checkpoint
from runners.core.finding import Finding
from runners.drafter.layouts import Layout, weight_bytes

PADDING = 128  # tokens by which llama.cpp lets the two vocabularies' sizes differ (common/speculative.cpp)
HEAVY = 1 / 3  # of the target's weights: three drafts then read as much as the step that verifies them


def check(model: Layout, target: dict[str, Any], weights: Checkpoint | None) -> Iterator[Finding]:
    """Findings of a draft model. target: its text config. weights: the target's folder, None where it is not here."""
    other = _other_ids(model.folder, weights.folder) if model.folder and weights else None
    yield from vocabulary(model.config.get("vocab_size"), target.get("vocab_size"), other)
    if other is None:
        yield Finding("note", "the tokenizers were not compared: one of the two folders has no tokenizer.json", "")
    elif other:
        words = f"{len(other):,} tokens have other ids in its tokenizer than in the target's, first {other[0]!r}"
        yield Finding("blocker", words, "take one of the target's family: its drafts are compared token by token")
    if weights and model.tensors and weights.tensors:
        yield _size(weight_bytes(model.tensors) / weight_bytes(weights.tensors))


def vocabulary(own: int | None, theirs: int | None, other_ids: list[str] | None = None) -> Iterator[Finding]:
    """Findings of the two sizes. other_ids: tokens whose ids differ; None where that is not known."""
    if not own or not theirs or own == theirs:
        return
    words = f"it knows {own:,} tokens, the target {theirs:,}"
    if other_ids == [] and abs(own - theirs) <= PADDING:
        words += ": the same tokenizer, padded to another size"
        fix = "llama.cpp takes it; vLLM 0.32 only with use_heterogeneous_vocab in its speculative config"
        yield Finding("warning", words, fix)
    else:
        yield Finding("blocker", words, "take one of the target's family: its drafts are compared token by token")


def _size(ratio: float) -> Finding:
    words = f"its weights have {ratio:.3g} of the target's bytes: each drafted token costs about that part of a step"
    if ratio > HEAVY:
        return Finding("warning", words, "take a smaller one: three drafts cost as much as the step that verifies them")
    return Finding("note", words, "")


def _other_ids(one: Path, other: Path) -> list[str] | None:
    """Tokens that both tokenizers know under different ids, or that one does not know; None where one has no file."""
    left, right = token_ids(one), token_ids(other)
    if left is None or right is None:
        return None
    return sorted(token for token in left.keys() | right.keys() if left.get(token) != right.get(token))


def token_ids(folder: Path) -> dict[str, int] | None:
    """Token -> id of a folder's tokenizer.json, added tokens included; None where it cannot be read."""
    try:
        held = json_text.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        vocabulary = held["model"]["vocab"]
        # A Unigram model lists [token, score] in the order of ids.
        ids = {row[0]: i for i, row in enumerate(vocabulary)} if isinstance(vocabulary, list) else dict(vocabulary)
        return ids | {token["content"]: token["id"] for token in held.get("added_tokens") or []}
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
