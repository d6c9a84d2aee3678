"""A model folder as files: its config.json and its tensors' names, dtypes and shapes, without loading weights."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runners.core import json_text
from runners.core.errors import UserError

HEADER_LIMIT = 100_000_000  # bytes; safetensors itself refuses a longer header
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")  # not read: loading one runs the code it holds
CONFIG_LIMIT = 10_000_000  # bytes; the largest public configs have some ten thousand
LAYER_IDS = "eagle_aux_hidden_state_layer_ids"
LAYER_CONFIG = "transformer_layer_config"  # where speculators keeps what describes a drafter's layer
# Where a multimodal wrapper keeps the language model's part.
_LANGUAGE_MODEL = ("text_config", "thinker_config", "llm_config", "language_config")
_BAD = (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error)  # a file that is not what its name says


@dataclass(frozen=True)
class Checkpoint:
    """A drafter's or target's config and its tensors: name -> (dtype as safetensors names it, shape).

    files: in which file each tensor lies. pickles: the folder's weights, where they are of a form that is not read;
    there are no tensors then.
    """

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, tuple[str, list[int]]]
    files: dict[str, Path] = field(default_factory=dict)
    pickles: tuple[str, ...] = ()


def read(folder: Path) -> Checkpoint:
    """A folder with one or several safetensors files.

    UserError when it, its config or its weights cannot be read, or a file that its index names is missing.
    """
    config = read_config(folder)
    try:
        weights = weight_files(folder)
        headers = {path: _safetensors_header(path)[0] for path in weights}
        tensors = {n: (e["dtype"], e["shape"]) for header in headers.values() for n, e in header.items()}
    except _BAD as error:
        raise UserError(f"{folder} cannot be read ({error}); copy its weights again.") from error
    pickles: tuple[str, ...] = () if weights else tuple(sorted(p.name for end in PICKLES for p in folder.glob(end)))
    if not weights and not pickles:
        raise UserError(f"{folder} has no weights; a model is a folder with config.json and safetensors files.")
    files = {name: path for path, header in headers.items() for name in header}
    return Checkpoint(folder, config, tensors, files, pickles)


def refuse_pickles(place: Path, what: str) -> None:
    """UserError for weights that are pickles alone: whatever loads one, an engine too, may run the code in it.

    place: a model's folder or file. A pickle beside `model*.safetensors` is loaded by nobody, and may stay.
    """
    files = [place] if place.is_file() else [*place.glob("*")]
    pickles = sorted(p.name for p in files if any(p.match(end) for end in PICKLES))
    weights = [p for p in files if p.suffix in (".safetensors", ".gguf")]
    # transformers looks for these two names alone, whatever else lies there.
    decoy = any(n.startswith("pytorch_model") for n in pickles) and not any(p.name.startswith("model") for p in weights)
    if pickles and (not weights or decoy):
        raise UserError(
            f"The weights of the {what} in {place} are pickles ({pickles[0]}), which may hold code that runs when they "
            "are loaded; convert them to safetensors, or take a copy that has them."
        )


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json; UserError when there is none or it holds no mapping."""
    file = folder / "config.json"
    if not file.is_file():
        raise UserError(f"No {file}; a model is a folder with config.json and safetensors files.")
    if file.stat().st_size > CONFIG_LIMIT:
        raise UserError(f"{file} must be a config of at most {CONFIG_LIMIT:,} bytes; copy it again.")
    try:
        config = json_text.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read ({error}); copy it again.") from error
    if not isinstance(config, dict):
        raise UserError(f"{file} must hold a mapping; copy it again.")
    return config


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a model: those that its index names, else model.safetensors, else all there are.

    UserError when one of the index is missing; ValueError and its like for an index of another form.
    """
    index, whole = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if not index.is_file():
        return [whole] if whole.is_file() else sorted(folder.glob("*.safetensors"))
    named = sorted(set(json_text.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    if outside := [name for name in named if Path(name).name != name]:
        raise UserError(f"The index in {folder} must name files of that folder, not {outside[0][:80]!r}; correct it.")
    missing = [name for name in named if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"{len(missing)} of {len(named)} shards of the index are missing in {folder}, first {missing[0]}; "
            "finish the download or the copy."
        )
    return [folder / name for name in named]


def shard_bytes(path: Path) -> int | None:
    """How long a safetensors file should be by its own header, in bytes; None when it has no readable header."""
    try:
        header, begin = _safetensors_header(path)
        return begin + max((entry["data_offsets"][1] for entry in header.values()), default=0)
    except _BAD:
        return None


def _safetensors_header(path: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """(tensor name -> dtype, shape, data_offsets; where the data begin, in bytes).

    The format: 8 bytes that hold the header's length, the header as JSON, the tensors
    (github.com/huggingface/safetensors, "Format"). Raises ValueError or struct.error when the file is not of it.
    """
    with open(path, "rb") as handle:
        (size,) = struct.unpack("<Q", handle.read(8))
        if size > HEADER_LIMIT:
            raise ValueError("its header is too long")
        header = json_text.loads(handle.read(size))
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    for name, entry in tensors.items():
        whole = isinstance(entry["dtype"], str) and _counts(entry["shape"]) and _counts(entry["data_offsets"])
        if not whole or len(entry["data_offsets"]) != 2:
            raise ValueError(f"its header says nothing possible of tensor {name[:80]!r}")
    return tensors, 8 + size


def _counts(values: Any) -> bool:
    """Is it a list of whole numbers >= 0?"""
    return isinstance(values, list) and all(isinstance(v, int) and v >= 0 for v in values)


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of a config.json: a multimodal wrapper keeps it one or two levels down."""
    inner = next((config[key] for key in _LANGUAGE_MODEL if isinstance(config.get(key), dict)), None)
    return config if inner is None else config | text_config(inner)


def read_text_config(folder: Path) -> dict[str, Any] | None:
    """`text_config` of the folder's config.json; None when it cannot be read."""
    try:
        return text_config(json_text.loads((folder / "config.json").read_text()))
    except (OSError, ValueError, AttributeError):
        return None


def flat_config(config: dict[str, Any]) -> dict[str, Any]:
    """A drafter's config with all keys at the top, where speculators keeps those of its layer one level down.

    A key that is null at the top counts as absent there, as engines read it.
    """
    layer = config.get(LAYER_CONFIG)
    if not isinstance(layer, dict):
        return config
    return layer | {key: value for key, value in config.items() if value is not None and key != LAYER_CONFIG}


def named_layer_ids(config: dict[str, Any]) -> list[int] | None:
    """The layer ids that a drafter's config names, at the top or in `eagle_config`; None when it names none.

    The top goes first, as in vLLM 0.32 (v1/worker/gpu_model_runner.py). What an id means differs between engines and
    releases (engines/layer_ids.py). UserError when they are no list of integers.
    """
    nested = config.get("eagle_config")
    ids = config.get(LAYER_IDS) or (nested.get(LAYER_IDS) if isinstance(nested, dict) else None)
    if not ids:
        return None
    if not isinstance(ids, list) or not all(isinstance(i, int) for i in ids):
        raise UserError(f"{LAYER_IDS} must be a list of integers in the drafter's config.json; correct it.")
    return ids


def aux_layer_ids(config: dict[str, Any], layers: int) -> list[int]:
    """The layer ids of a drafter's config, else the default of vLLM, SGLang and llama.cpp for a target of `layers`.

    As boundaries: i is the input of layer i.
    """
    return named_layer_ids(config) or [2, layers // 2, layers - 3]


def boundaries_of(drafter_folder: Path, layers: int) -> list[int]:
    """`aux_layer_ids` of the config.json in a drafter's folder."""
    return aux_layer_ids(json_text.loads((drafter_folder / "config.json").read_text()), layers)


def aux_count(config: dict[str, Any]) -> int:
    """How many of the target's states a drafter takes in; three unless its config tells."""
    count: int | None = config.get("num_aux_hidden_states")
    return count or len(named_layer_ids(config) or (1, 2, 3))


def rope_base(config: dict[str, Any]) -> float | None:
    """RoPE's theta, under any of the names that transformers has given it; None where the config has none."""
    places = (config, config.get("rope_parameters"), config.get("rope_scaling"))
    found = (p["rope_theta"] for p in places if isinstance(p, dict) and p.get("rope_theta"))
    base: float | None = next(found, None)
    return base


def rope_scaling(config: dict[str, Any]) -> str:
    """The kind of RoPE scaling: "none", "llama3", "yarn", ..."""
    for place in (config.get("rope_scaling"), config.get("rope_parameters")):
        kind = (place.get("rope_type") or place.get("type")) if isinstance(place, dict) else None
        if kind and kind != "default":
            return str(kind)
    return "none"
