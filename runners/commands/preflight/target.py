"""Pre-flight of the target's files: is the folder complete, is it the profile's model, how long will a load take?"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from runners.core import gguf_header, json_text
from runners.core.checkpoint import read_text_config, shard_bytes
from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.profiles.profile import Profile
from runners.serve import target_files

PROBE_BYTES = 64 << 20  # 64 MiB: enough to time a disk, short enough for a check of seconds


def check(profile: Profile) -> Iterator[Finding]:
    """Findings of the target's files; nothing is fetched, and weights are read only to time the disk."""
    target = profile.target
    if target.path is None and target.package is None:
        yield Finding("note", f"{target.name} is known by its name alone: its servers run already")
        return
    if target.package:
        gguf, _ = target_files.forms(target)
        if gguf is not None and gguf.is_file():
            yield Finding("note", f"{target.name} is in the cache; its hash is checked when it is served")
        else:
            yield Finding("note", f"{target.name} is not in the cache: `make report` fetches and checks it")
        return
    gguf, folder = target_files.forms(target)
    if gguf is not None:
        yield from _file(gguf, profile)
    if folder is None:
        return
    if not folder.is_dir():
        words = f"the target is not at {folder}" + (": it is a file" if folder.is_file() else "")
        yield Finding("blocker", words, f"put it there, or set target.path in {profile.name}")
        return
    yield from model_folder(folder, target.bytes_on_disk)
    yield from _config(folder, profile)
    yield from _speed(folder, target.bytes_on_disk)


def _file(path: Path, profile: Profile) -> Iterator[Finding]:
    """Is a GGUF file there, whole at its head, and of the profile's model?"""
    if not path.is_file():
        yield Finding("blocker", f"the target is not at {path}", "put the file there, or correct its path")
        return
    target, expected = profile.target, target_files.bytes_of(profile.target, "gguf")
    size = gguf_header.bytes_on_disk(path)
    if expected and size != expected:
        words = f"{path.name} has {size:,} bytes, the profile says {expected:,}"
        yield Finding("warning", words, "copy it again, or correct bytes_on_disk")
    try:
        facts = gguf_header.read(path)
    except UserError as error:
        yield Finding("blocker", str(error))
        return
    said = {"layers": facts.layers, "hidden_size": facts.hidden_size, "vocab_size": facts.vocab_size}
    for key, found in said.items():
        wanted = getattr(target, key)
        if found is not None and found != wanted:
            words = f"{path.name} has {key} {found:,}, the profile {wanted:,}"
            # The two forms of a model may pad its vocabulary differently.
            level = "warning" if key == "vocab_size" else "blocker"
            yield Finding(level, words, "is it another model than the profile's? correct the path or the profile")
    if facts.context_length and target.context_length > facts.context_length:
        words = f"the profile asks for {target.context_length:,} positions, the model has {facts.context_length:,}"
        yield Finding("warning", words, "lower context_length")
    yield Finding("note", f"{path.name}: {facts.name or facts.architecture}, {facts.precision}")


def model_folder(folder: Path, expected_bytes: int | None = None) -> Iterator[Finding]:
    """Is a Hugging Face folder complete? Every shard of its index is there and as long as the shard's header says."""
    for name in ("config.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            yield Finding("blocker", f"{folder.name} has no {name}", "copy the whole model folder")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            held = json_text.loads(index.read_text())
            named = sorted(set(held["weight_map"].values()))
        except (ValueError, KeyError, AttributeError) as error:
            yield Finding("blocker", f"{index.name} cannot be read ({error})", "copy it again")
            return
    else:
        held, named = {}, [p.name for p in sorted(folder.glob("*.safetensors"))]
        if not named:
            yield Finding("blocker", f"{folder.name} holds no safetensors weights", "copy the whole model folder")
            return
    missing = [n for n in named if not (folder / n).is_file()]
    if missing:
        first = missing[0]
        words = f"{len(missing)} of {len(named)} shards of the index are missing, first {first}"
        yield Finding("blocker", words, "finish the download or the copy")
    total = 0
    for name in named:
        if name in missing:
            continue
        size, wanted = (folder / name).stat().st_size, shard_bytes(folder / name)
        total += size
        if wanted is None:
            yield Finding("blocker", f"{name} is not a safetensors file", "copy it again")
        elif size != wanted:
            words = f"{name} has {size:,} bytes, its header says {wanted:,}: it is cut off or still being written"
            yield Finding("blocker", words, "copy it again")
    if expected_bytes and not missing and abs(total - expected_bytes) > 0.05 * expected_bytes:
        words = f"the weights are {total / 1e9:.1f} GB, the profile says {expected_bytes / 1e9:.1f} GB"
        yield Finding("warning", words, "another precision or model? correct bytes_on_disk or the path")
    elif not missing:
        yield Finding("note", f"{len(named)} shards, {total / 1e9:.1f} GB, each as long as its header says")


def _config(folder: Path, profile: Profile) -> Iterator[Finding]:
    config, target = read_text_config(folder), profile.target
    if config is None:
        return
    for key, wanted in (
        ("num_hidden_layers", target.layers),
        ("hidden_size", target.hidden_size),
        ("vocab_size", target.vocab_size),
    ):
        if config.get(key) not in (None, wanted):
            words = f"config.json says {key} {config[key]:,}, the profile {wanted:,}"
            yield Finding("blocker", words, "this is another model than the profile's; correct the path or the profile")
    limit = config.get("max_position_embeddings")
    if limit and target.context_length > limit:
        words = f"the profile asks for {target.context_length:,} positions, the model has {limit:,}"
        yield Finding("warning", words, "lower context_length")


def _speed(folder: Path, expected_bytes: int) -> Iterator[Finding]:
    """How long the load will take from this disk, so that nobody takes a long load for a hang."""
    largest = max(folder.glob("*.safetensors"), key=lambda p: p.stat().st_size, default=None)
    if largest is None or largest.stat().st_size < PROBE_BYTES:
        return
    with open(largest, "rb") as handle:
        os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # from the disk, not from memory
        began, read = time.monotonic(), 0
        while read < PROBE_BYTES and (piece := handle.read(8 << 20)):
            read += len(piece)
    rate = read / max(time.monotonic() - began, 1e-9)
    minutes = expected_bytes / rate / 60
    yield Finding(
        "note",
        f"one stream reads {rate / 1e9:.1f} GB/s here: {expected_bytes / 1e9:.0f} GB take about {minutes:.0f} min",
    )
