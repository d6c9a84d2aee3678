"""A model folder as files: its config.json and its tensors' names, dtypes and shapes, without loading weights."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.core.errors import UserError

HEADER_LIMIT = 100_000_000  # bytes; safetensors itself refuses a longer header


@dataclass(frozen=True)
class Checkpoint:
    """A drafter's or target's config and its tensors: name -> (dtype as safetensors names it, shape)."""

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
        header, _ = _safetensors_header(weights)
    except (ValueError, struct.error) as error:
        raise UserError(f"{folder} cannot be read ({error}); copy the drafter again.") from error
    return Checkpoint(folder, config, {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()})


def shard_bytes(path: Path) -> int | None:
    """How long a safetensors file should be by its own header, in bytes; None when it has no readable header."""
    try:
        header, begin = _safetensors_header(path)
    except (OSError, ValueError, struct.error):
        return None
    return begin + max((entry["data_offsets"][1] for entry in header.values()), default=0)


def _safetensors_header(path: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """(tensor name -> dtype, shape, data_offsets; where the data begin, in bytes).

    The format: 8 bytes that hold the header's length, the header as JSON, the tensors
    (github.com/huggingface/safetensors, "Format"). Raises ValueError or struct.error when the file is not of it.
    """
    with open(path, "rb") as handle:
        (size,) = struct.unpack("<Q", handle.read(8))
        if size > HEADER_LIMIT:
            raise ValueError("its header is too long")
        header = json.loads(handle.read(size))
    return {name: entry for name, entry in header.items() if name != "__metadata__"}, 8 + size


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of a config.json: a multimodal wrapper keeps it one level down."""
    return config | (config.get("text_config") or {})


def read_text_config(folder: Path) -> dict[str, Any] | None:
    """`text_config` of the folder's config.json; None when it cannot be read."""
    try:
        return text_config(json.loads((folder / "config.json").read_text()))
    except (OSError, ValueError):
        return None


def named_layer_ids(config: dict[str, Any]) -> list[int] | None:
    """The layer ids that a drafter's config names, as written there; None when it names none.

    What an id means differs between engines and releases (engines/layer_ids.py).
    """
    ids: list[int] | None = (config.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    return ids or None


def aux_layer_ids(config: dict[str, Any], layers: int) -> list[int]:
    """The layer ids of a drafter's config, else the default of vLLM, SGLang and llama.cpp for a target of `layers`.

    As boundaries: i is the input of layer i.
    """
    return named_layer_ids(config) or [2, layers // 2, layers - 3]


def boundaries_of(drafter_folder: Path, layers: int) -> list[int]:
    """`aux_layer_ids` of the config.json in a drafter's folder."""
    return aux_layer_ids(json.loads((drafter_folder / "config.json").read_text()), layers)


def aux_count(config: dict[str, Any]) -> int:
    """How many of the target's states a drafter takes in; three unless its config tells."""
    count: int | None = config.get("num_aux_hidden_states")
    return count or len(named_layer_ids(config) or (1, 2, 3))


def rope_base(config: dict[str, Any]) -> float | None:
    """RoPE's theta, under either of the names that transformers has given it."""
    base: float | None = config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta")
    return base
