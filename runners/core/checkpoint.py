"""A model folder as files: its config.json and its tensors' names, dtypes and shapes, without loading weights."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.core.errors import UserError


@dataclass(frozen=True)
class Checkpoint:
    """A drafter's or target's config and the shapes and dtypes of its tensors."""

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, tuple[str, list[int]]]


def read(folder: Path) -> Checkpoint:
    """UserError when the folder, its config or its weights cannot be read."""
    config_file, weights = folder / "config.json", folder / "model.safetensors"
    for file in (config_file, weights):
        if not file.is_file():
            raise UserError(f"No {file}; a drafter is a folder with config.json and model.safetensors.")
    try:
        config = json.loads(config_file.read_text())
        with open(weights, "rb") as handle:
            (size,) = struct.unpack("<Q", handle.read(8))
            if size > 100_000_000:
                raise ValueError("its header is too long")
            header = json.loads(handle.read(size))
    except (ValueError, struct.error) as error:
        raise UserError(f"{folder} cannot be read ({error}); copy the drafter again.") from error
    tensors = {k: (v["dtype"], v["shape"]) for k, v in header.items() if k != "__metadata__"}
    return Checkpoint(folder, config, tensors)


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of a config.json: a multimodal wrapper keeps it one level down."""
    return config | config.get("text_config", {})


def aux_count(config: dict[str, Any]) -> int:
    ids = (config.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    return config.get("num_aux_hidden_states") or (len(ids) if ids else 3)


def rope_base(config: dict[str, Any]) -> float | None:
    return config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta")


def shard_bytes(path: Path) -> int | None:
    """A safetensors file's length by its own header (8 bytes, header, tensors); None when it has none."""
    try:
        with open(path, "rb") as handle:
            (size,) = struct.unpack("<Q", handle.read(8))
            if size > 100_000_000:
                return None
            header = json.loads(handle.read(size))
    except (OSError, ValueError, struct.error):
        return None
    ends = [v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"]
    return 8 + size + max(ends, default=0)


def read_text_config(folder: Path) -> dict | None:
    """The language model's part of config.json; None when it cannot be read."""
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return None
    return text_config(config)


def boundaries_of(drafter_folder: Path, layers: int) -> list[int]:
    """The boundaries a drafter's config names ("input of layer i"), else the engines' default."""
    config = json.loads((drafter_folder / "config.json").read_text())
    named = (config.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    return named or [2, layers // 2, layers - 3]
