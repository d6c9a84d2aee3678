"""Were a drafter's weights once rounded to fewer bits? What some rows of fc show."""

from collections.abc import Iterator

import numpy as np
from safetensors import safe_open

from runners.core.finding import Finding
from runners.drafter.layouts import Layout

ROWS = 64  # of fc: enough to tell


def check(head: Layout) -> Iterator[Finding]:
    """A block of 32 weights has few different values (four bits), or the low bits are all zero (bfloat16)."""
    kind, shape = head.tensors.get("fc.weight", ("", []))
    if kind not in ("F16", "F32"):
        return
    with safe_open(head.files["fc.weight"], "np") as weights:
        rows = np.ascontiguousarray(weights.get_slice(head.named["fc.weight"])[: min(ROWS, shape[0])])
    blocks = rows[:, : rows.shape[1] // 32 * 32].reshape(-1, 32)
    if blocks.size and max(len(np.unique(block)) for block in blocks) <= 16:
        words = "its weights take at most 16 values in each block of 32: they were rounded to four bits"
        yield Finding("warning", words, "serve the drafter in the precision it was trained in", "int4")
    elif rows.dtype == np.float16 and not (rows.astype(np.float32).view(np.uint32) & 0xFFFF).any():
        yield Finding("warning", "its float16 weights hold bfloat16 values", "usually harmless", "bfloat16")
