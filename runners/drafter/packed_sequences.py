"""Prompts and answers as token ids, packed into one safetensors file for the scripts."""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from runners.drafter import corpus


def pack(rows: list[dict], output: Path) -> None:
    """Write the sequences into one safetensors file.

    rows: prompt_tokens, answer_tokens, part. The file holds
    ids [tokens] int32, all sequences one after the other; offsets [sequences + 1] int64, where each begins;
    prompt [sequences] int32, how many of its tokens are the prompt; held_out [sequences] uint8, 1 or 0.
    """
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
    """Pack the first `count` greedy answers of the corpus's held-out part."""
    import pandas as pd

    rows = pd.read_parquet(corpus.FOLDER / "answers.parquet")
    chosen = rows[(rows["part"] == "held-out") & (rows["temperature"] == 0)].head(count)
    pack(chosen.to_dict("records"), output)
