"""A target and a drafter as somebody names them: a Hugging Face folder, a GGUF file or both, and what they say."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.core import checkpoint, files, gguf_header
from runners.core.errors import UserError
from runners.drafter import layouts

DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
CACHED = re.compile(r"^models--.+--(.+)$")  # a folder of Hugging Face's cache: models--ORGANISATION--NAME/snapshots/...
LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")


@dataclass(frozen=True)
class Forms:
    """Where a model is: at least one of the two."""

    folder: Path | None = None
    gguf: Path | None = None


@dataclass(frozen=True)
class Model:
    """A target. precision, bytes_on_disk: of the folder, or of the file where it is alone; gguf_precision, gguf_bytes:
    of the file. context_length: what the model was made for; kv_width: numbers of K and V together that one layer keeps
    of a token; None: not known.
    """

    forms: Forms
    name: str
    precision: str
    layers: int
    hidden_size: int
    vocab_size: int
    context_length: int
    bytes_on_disk: int
    gguf_precision: str = ""
    gguf_bytes: int = 0
    kv_width: int | None = None


@dataclass(frozen=True)
class Draft:
    """A drafter. limit: its max_position_embeddings; None: not known."""

    forms: Forms
    method: str
    limit: int | None


def forms_of(paths: Sequence[str], what: str, needs: str) -> Forms:
    """The forms among the paths given: folders and GGUF files, also a folder that holds one GGUF file.

    what: the model, for messages; needs: what a path must be. UserError for a path that is neither, or two of one form.
    """
    folders, ggufs = list[Path](), list[Path]()
    for given in paths:
        path = Path(given).expanduser().resolve()
        if path.suffix == ".gguf" and path.is_file():
            ggufs.append(path)
            continue
        inside = sorted(p for p in path.glob("*.gguf") if not LATER_PART.search(p.name)) if path.is_dir() else []
        is_folder = (path / "config.json").is_file() and (not inside or any(path.glob("*.safetensors")))
        if is_folder:
            folders.append(path)
        if len(inside) > 1 and not is_folder:
            names = ", ".join(p.name for p in inside)
            raise UserError(f"{what} {path} holds several GGUF files ({names}); name one of them.")
        if not is_folder and not inside:
            raise UserError(f"{what} {path} must be {needs}, and has no config.json and is no GGUF file; give another.")
        ggufs += inside if len(inside) == 1 else []
    for found, form in ((folders, "folders"), (ggufs, "GGUF files")):
        if len(set(found)) > 1:
            both = f"{found[0]} and {found[1]} are two {form}"
            raise UserError(f"{what}: {both}; give the forms of one model, a folder and a file.")
    return Forms(folders[0] if folders else None, ggufs[0] if ggufs else None)


def target(paths: Sequence[str]) -> Model:
    """What the model's own files say of it; UserError when they cannot be read, or do not say what must be known."""
    forms = forms_of(paths, "the target", "a Hugging Face folder or a GGUF file")
    file = None if forms.gguf is None else gguf_header.read(forms.gguf)
    size = 0 if forms.gguf is None else gguf_header.bytes_on_disk(forms.gguf)
    if forms.folder is None:
        assert forms.gguf is not None and file is not None, "a model has one form at least"
        shape = {"layers": file.layers, "hidden_size": file.hidden_size, "vocab_size": file.vocab_size}
        length, precision, kv_width, whole = file.context_length, file.precision, file.kv_width, size
    else:
        config = checkpoint.text_config(files.read_json(forms.folder / "config.json", dict, "copy the model again"))
        keys = {"layers": "num_hidden_layers", "hidden_size": "hidden_size", "vocab_size": "vocab_size"}
        shape = {ours: config.get(theirs) for ours, theirs in keys.items()}
        length, precision, kv_width = config.get("max_position_embeddings"), _precision(config), _kv_width(config)
        whole = sum(p.stat().st_size for p in forms.folder.glob("*.safetensors"))
    missing = [key for key, value in shape.items() if not value]
    if missing:
        raise UserError(f"{forms.folder or forms.gguf} does not say its {missing[0]}; give the model's own files.")
    return Model(
        forms=forms,
        name=_name(forms, file.name if file else ""),
        precision=precision,
        layers=int(shape["layers"] or 0),
        hidden_size=int(shape["hidden_size"] or 0),
        vocab_size=int(shape["vocab_size"] or 0),
        context_length=int(length or 8192),
        bytes_on_disk=whole,
        gguf_precision=file.precision if file else "",
        gguf_bytes=size,
        kv_width=kv_width,
    )


def drafter(paths: Sequence[str]) -> Draft:
    """How a drafter drafts, by its files. UserError when they cannot be read."""
    forms = forms_of(paths, "the drafter", "a drafter's folder or a GGUF file")
    if forms.folder is None:
        assert forms.gguf is not None, "a drafter has one form at least"
        head = gguf_header.read(forms.gguf)
        return Draft(forms, "eagle3" if head.architecture == "eagle3" else "draft_model", head.context_length)
    found = layouts.of(checkpoint.read(forms.folder))
    return Draft(forms, found.method, found.config.get("max_position_embeddings"))


def _name(forms: Forms, said: str) -> str:
    """What a person calls the model. A folder of a cache is named after a hash, and its file's head may know better."""
    folder = forms.folder or (forms.gguf.parent if forms.gguf else Path())
    for part in (folder, *folder.parents):
        if found := CACHED.match(part.name):
            return found[1]
    if forms.folder is None:
        return said or (forms.gguf.stem if forms.gguf else "target")
    return said or forms.folder.name


def _precision(config: dict[str, Any]) -> str:
    quantised = (config.get("quantization_config") or {}).get("quant_method")
    kept = str(quantised or config.get("dtype") or config.get("torch_dtype") or "BF16")
    return DTYPES.get(kept, kept)


def _kv_width(config: dict[str, Any]) -> int | None:
    heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
    if not heads or not hidden:
        return None
    one = config.get("head_dim") or hidden // heads
    return int(2 * (config.get("num_key_value_heads") or heads) * one)
