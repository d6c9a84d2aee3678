"""One drafter made from another: the broken variants, each with one named fault (book, chapter Alignment).

Runs inside the reference environment. A fault is put into the checkpoint itself, so that every engine serves the
same one; the weights are otherwise untouched.

    python derive_drafter.py FAULT SOURCE_FOLDER OUTPUT_FOLDER SEED
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

Tensors = dict[str, np.ndarray]
LAYER = "midlayer."


def random_head(t: Tensors, c: dict, rng: np.random.Generator) -> None:
    """The LM head never loaded: what an engine serves that draws it at random and warns at most."""
    shape = t["lm_head.weight"].shape
    t["lm_head.weight"] = (rng.standard_normal(shape, dtype=np.float32) * 0.02).astype(np.float16)


def wrong_map(t: Tensors, c: dict, rng: np.random.Generator) -> None:
    """The draft-to-target map of another vocabulary: every draft id names its neighbour's token."""
    size = len(t["d2t"])
    target = np.roll(t["d2t"] + np.arange(size), 1)
    t["d2t"] = (target - np.arange(size)).astype(np.int64)


def rope_base(t: Tensors, c: dict, rng: np.random.Generator) -> None:
    """RoPE base 10,000 (a common default) where the drafter was trained with the target's."""
    c["rope_theta"] = 10_000.0


def norm_flag(t: Tensors, c: dict, rng: np.random.Generator) -> None:
    """The residual taken after the norm, as another training recipe has it."""
    c["norm_before_residual"] = not c.get("norm_before_residual", False)


def aux_order(t: Tensors, c: dict, rng: np.random.Generator) -> None:
    """The three aux states in reverse order: the layer that takes them expects them so.

    Not the list of layer ids turned round: vLLM and SGLang capture in the order of layers whatever the list says
    (vllm/model_executor/models/llama.py), llama.cpp in the list's order.
    """
    width = t["fc.weight"].shape[1] // len(_ids(c))
    blocks = [t["fc.weight"][:, i * width : (i + 1) * width] for i in range(len(_ids(c)))]
    t["fc.weight"] = np.ascontiguousarray(np.concatenate(blocks[::-1], axis=1))


def _ids(c: dict) -> list[int]:
    return c["eagle_config"]["eagle_aux_hidden_state_layer_ids"]


def boundary(shift: int) -> Callable[[Tensors, dict, np.random.Generator], None]:
    def change(t: Tensors, c: dict, rng: np.random.Generator) -> None:
        c["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = [i + shift for i in _ids(c)]

    change.__doc__ = f"States captured {shift:+d} layer from where they were trained: the layer-id convention."
    return change


def int4(t: Tensors, c: dict, rng: np.random.Generator) -> None:
    """The target's quantization inherited: every matrix rounded to 4 bits in blocks of 32, as Q4_0 does."""
    for name, value in t.items():
        if value.ndim == 2:
            blocks = value.astype(np.float32).reshape(-1, 32)
            scale = np.abs(blocks).max(1, keepdims=True) / 7
            rounded = np.round(blocks / np.where(scale == 0, 1, scale)).clip(-8, 7) * scale
            t[name] = rounded.reshape(value.shape).astype(value.dtype)


def bfloat16(t: Tensors, c: dict, rng: np.random.Generator) -> None:
    """Another dtype: every weight rounded to bfloat16's eight bits."""
    for name, value in t.items():
        if value.dtype == np.float16:
            bits = value.astype(np.float32).view(np.uint32)
            t[name] = ((bits + 0x8000) & 0xFFFF0000).view(np.float32).astype(np.float16)


def short_context(t: Tensors, c: dict, rng: np.random.Generator) -> None:
    """A limit on positions far below what is asked for."""
    c["max_position_embeddings"] = 64


def noisy(scale: float) -> Callable[[Tensors, dict, np.random.Generator], None]:
    def change(t: Tensors, c: dict, rng: np.random.Generator) -> None:
        for name, value in t.items():
            if value.ndim == 2:
                noise = rng.standard_normal(value.shape, dtype=np.float32) * float(value.std()) * scale
                t[name] = (value.astype(np.float32) + noise).astype(value.dtype)

    change.__doc__ = (
        f"Noise of {scale:g} of each matrix's own spread: a drafter of lower quality, for graded acceptance."
    )
    return change


# The faults by name. This table and `main` keep the words that published drafters were made with: their text is part of
# a derived drafter's digest (serve/drafter_files.py), and another word would set aside every cell measured with one.
CHANGES: dict[str, Callable[[Tensors, dict, np.random.Generator], None]] = {
    "random-head": random_head,
    "wrong-map": wrong_map,
    "rope-base": rope_base,
    "norm-flag": norm_flag,
    "aux-order": aux_order,
    "boundary+1": boundary(1),
    "boundary-1": boundary(-1),
    "int4": int4,
    "bfloat16": bfloat16,
    "short-context": short_context,
    "noise-0.2": noisy(0.2),
    "noise-0.4": noisy(0.4),
}


def main(change: str, source: Path, output: Path, seed: int) -> None:
    if change not in CHANGES:
        sys.exit(f"error: no change '{change}'; there are {', '.join(CHANGES)}")
    tensors = load_file(source / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    CHANGES[change](tensors, config, np.random.default_rng(seed))
    output.mkdir(parents=True, exist_ok=True)
    save_file(tensors, output / "model.safetensors", metadata={"format": "pt"})
    (output / "config.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
