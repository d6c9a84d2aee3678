"""Tensors of a Hugging Face folder by name, from one safetensors file or several. Runs in the reference environment."""

import json
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

# Under which names a target keeps its embedding and its LM head; those of a multimodal wrapper are longer.
EMBEDDING = (
    "model.embed_tokens.weight",
    "embed_tokens.weight",
    "language_model.model.embed_tokens.weight",
    "model.language_model.embed_tokens.weight",
)
HEAD = ("lm_head.weight", "language_model.lm_head.weight")


def files(folder: Path) -> list[Path]:
    """Those of the index, else model.safetensors, else all there are."""
    index, whole = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if index.is_file():
        return [folder / name for name in sorted(set(json.loads(index.read_text())["weight_map"].values()))]
    return [whole] if whole.is_file() else sorted(folder.glob("*.safetensors"))


def all_of(folder: Path) -> dict[str, Tensor]:
    """Every tensor, on the CPU, in its own dtype."""
    found: dict[str, Tensor] = {}
    for path in files(folder):
        found |= load_file(path)
    return found


def one(folder: Path, names: tuple[str, ...]) -> Tensor | None:
    """The tensor under the first of these names that is there, in float32; None without one. The rest is not loaded."""
    held = {}
    for path in files(folder):
        with safe_open(path, "pt") as weights:
            held |= dict.fromkeys(weights.keys(), path)
    name = next((n for n in names if n in held), None)
    if name is None:
        return None
    with safe_open(held[name], "pt") as weights:
        return weights.get_tensor(name).float()
