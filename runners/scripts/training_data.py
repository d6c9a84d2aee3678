"""What the drafter is trained on: packed sequences, their captured states, batches and the draft vocabulary."""

import random
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor


class Data:
    """Sequences with their captured states; states stay on disk and are read per batch (memory-mapped)."""

    def __init__(self, sequences: str, states: str, finals: str | None = None):
        packed = load_file(sequences)
        self.ids = packed["ids"].long()
        self.offsets = packed["offsets"].tolist()
        self.prompt = packed["prompt"].tolist()  # tokens of the prompt, per sequence
        self.held_out = packed["held_out"].bool().tolist()
        self.shards = {"states": self._open(Path(states), "states")}
        final = self._open(Path(finals or states), "final")
        self.shards |= {"final": final, "argmax": final}

    def _open(self, folder: Path, name: str) -> list[tuple[int, int, object]]:
        """(first token, token after the last, shard) of each shard in `folder`."""
        found, start = [], 0
        for path in sorted(folder.glob("shard-*.safetensors")):
            shard = safe_open(path, "pt")
            end = start + shard.get_slice(name).get_shape()[0]
            found.append((start, end, shard))
            start = end
        if start != self.offsets[-1]:
            sys.exit(f"error: {folder} holds states of {start} tokens, not of {self.offsets[-1]}")
        return found

    def length(self, i: int) -> int:
        return self.offsets[i + 1] - self.offsets[i]

    def read(self, i: int, name: str) -> Tensor:
        at = self.offsets[i]
        first, _, shard = next(s for s in self.shards[name] if s[0] <= at < s[1])
        return shard.get_slice(name)[at - first : at - first + self.length(i)]

    def batch(self, rows: list[int], device) -> dict[str, Tensor]:
        """ids [B, T], aux [B, T, 3H], final [B, T, H], argmax [B, T], scored [B, T] (is x_t an answer's token?)"""
        longest = max(self.length(i) for i in rows)
        found: dict[str, Tensor] = {}
        for row, i in enumerate(rows):
            n = self.length(i)
            parts = {
                "ids": self.ids[self.offsets[i] : self.offsets[i + 1]],
                "aux": self.read(i, "states").flatten(1).float(),
                "final": self.read(i, "final").float(),
                "argmax": self.read(i, "argmax").long(),
                "scored": torch.arange(n) >= self.prompt[i],
            }
            for name, value in parts.items():
                if name not in found:
                    found[name] = torch.zeros(len(rows), longest, *value.shape[1:], dtype=value.dtype)
                found[name][row, :n] = value
        return {name: value.to(device) for name, value in found.items()}


def choose_vocabulary(data: Data, rows: list[int], size: int) -> Tensor:
    """Target ids of the draft vocabulary: the most frequent tokens of the training answers, ascending."""
    counts = torch.zeros(int(data.ids.max()) + 1, dtype=torch.long)
    for i in rows:
        answer = data.ids[data.offsets[i] + data.prompt[i] : data.offsets[i + 1]]
        counts.index_add_(0, answer, torch.ones_like(answer))
    return counts.topk(min(size, len(counts))).indices.sort().values


def make_batches(data: Data, rows: list[int], tokens: int, rng: random.Random) -> list[list[int]]:
    """Sequences of like length together, about `tokens` a batch, batches in random order."""
    pool = sorted(rows, key=lambda i: (data.length(i) // 16, rng.random()))
    batches: list[list[int]] = [[]]
    for i in pool:
        if batches[-1] and (len(batches[-1]) + 1) * data.length(i) > tokens:
            batches.append([])
        batches[-1].append(i)
    rng.shuffle(batches)
    return batches
