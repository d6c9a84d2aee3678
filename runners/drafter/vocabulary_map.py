"""Does a drafter's vocabulary fit its target? Sizes, and the map of a smaller draft vocabulary.

d2t holds, for each draft token, the target's id minus the draft id (vllm/model_executor/models/llama_eagle3.py 0.32:
`base + draft_id_to_target_id`); t2d marks the same tokens in the target's vocabulary. Only these two are loaded.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from safetensors import safe_open

from runners.core.finding import Finding
from runners.drafter.layouts import Layout

WHOLE_NUMBERS = ("I64", "I32", "I16", "U64", "U32", "U16")


def check(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    """Findings of the vocabulary. target: its text config."""
    whole, own = target["vocab_size"], head.config.get("vocab_size")
    if own and own != whole:
        words = f"its vocab_size is {own:,}, but the target's is {whole:,}: was it made for this target?"
        yield Finding("warning", words, "see its card: embedding and map follow the target's vocabulary", "wrong-map")
    size = head.config.get("draft_vocab_size")
    if not size or size == whole or not head.tensors:
        return
    if "d2t" not in head.tensors:
        yield Finding("blocker", f"the draft vocabulary has {size} tokens and no d2t map", "export d2t", "wrong-map")
        return
    kind, shape = head.tensors["d2t"]
    if kind not in WHOLE_NUMBERS:
        words = f"d2t is stored as {kind}, which does not hold token ids exactly"
        yield Finding("blocker", words, "export it again as int64", "wrong-map")
        return
    if shape[0] != size:
        words = f"d2t has {shape[0]} entries for {size} draft tokens"
        yield Finding("blocker", words, "export it again", "wrong-map")
        return
    stored, marked = load(head, "d2t").astype(np.int64), _marked(head)
    ids = stored + np.arange(size)
    if marked is not None and stored.any() and np.array_equal(np.flatnonzero(marked), stored):
        words = "d2t holds the target's ids, which t2d marks, and not offsets from the draft ids"
        yield Finding("blocker", words, "store target id minus draft id", "wrong-map")
        return
    yield from _ids(ids, whole)
    if marked is not None:
        yield from _other_way(marked, ids, whole)


def load(head: Layout, name: str) -> np.ndarray:
    """One tensor's values; not of bfloat16, which numpy does not know."""
    with safe_open(head.files[name], "np") as weights:
        return weights.get_tensor(head.named[name])


def _ids(ids: np.ndarray, whole: int) -> Iterator[Finding]:
    if ids.min() < 0 or ids.max() >= whole:
        words = "d2t leads outside the target's vocabulary; it may hold target ids instead of offsets"
        yield Finding("blocker", words, "store target id minus draft id", "wrong-map")
    elif len(np.unique(ids)) != len(ids):
        yield Finding("blocker", "d2t names the same target token twice", "export it again", "wrong-map")
    elif (np.diff(ids) <= 0).any():
        yield Finding(
            "warning",
            "d2t does not ascend: the map may belong to another vocabulary",
            "compare it with the LM head's rows",
            "wrong-map",
        )


def _marked(head: Layout) -> np.ndarray | None:
    """t2d, not 0 at each token of the draft vocabulary; None where there is none that can be loaded."""
    kind = head.tensors.get("t2d", ("",))[0]
    return load(head, "t2d") if kind in ("BOOL", "U8", "I8", *WHOLE_NUMBERS) else None


def _other_way(marked: np.ndarray, ids: np.ndarray, whole: int) -> Iterator[Finding]:
    if len(marked) != whole:
        words = f"t2d has {len(marked):,} entries, but the target knows {whole:,} tokens"
        yield Finding("warning", words, "export it again for this target", "wrong-map")
    elif not np.array_equal(np.flatnonzero(marked), np.sort(ids)):
        yield Finding("warning", "t2d and d2t name different tokens", "export both again", "wrong-map")
