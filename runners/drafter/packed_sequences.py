"""Prompts and answers as token ids, packed into one safetensors file for the scripts."""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from runners.drafter import corpus


def pack(rows: list[dict], output: Path) -> None:
    """The sequences in one safetensors file: `ids`, `offsets`; per sequence `prompt` and `held_out`."""
    sequences = [[*r["prompt_tokens"], *r["answer_tokens"]] for r in rows]
    offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
    output.parent.mkdir(parents=True, exist_ok=True)
    tensors = {
        "ids": np.concatenate([np.asarray(s, dtype=np.int32) for s in sequences]),
        "offsets": offsets,
        "prompt": np.asarray([len(r["prompt_tokens"]) for r in rows], dtype=np.int32),
        "held_out": np.asarray([r["part"] == "held-out" for r in rows], dtype=np.uint8),
    }
    save_file(tensors, output)


def pack_held_out(output: Path, count: int) -> None:
    """The first `count` greedy answers of the corpus's held-out part, packed."""
    import pandas as pd

    rows = pd.read_parquet(corpus.FOLDER / "answers.parquet")
    chosen = rows[(rows["part"] == "held-out") & (rows["temperature"] == 0)].head(count)
    pack(chosen.to_dict("records"), output)
