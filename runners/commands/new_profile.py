"""`specverdict new-profile NAME`: look at this machine and write a commented profile for it.

It reads the GPUs and their memory, the engines of the given interpreters, and the target's and the drafter's configs.
What it cannot find gets an example value and a comment CHECK; the result is a valid profile in any case.
"""

import argparse
import json
import os
import re
from pathlib import Path

import psutil

from runners.core import checkpoint, files, gpus, paths
from runners.core.errors import UserError
from runners.engines import environments
from runners.engines.engine import NewProfile
from runners.engines.registry import all_engines
from runners.profiles.load import load

LEVELS = [1, 4, 16, 64, 128]
AT_ONCE = [
    "  servers_at_once: 1       # CHECK: 2 where the memory holds base and another one; then a start decides much more"
]


def write(name: str, target: str | None = None, drafter: str | None = None, pythons: list[str] | None = None) -> int:
    """Write runners/profiles/<name>.yaml; UserError when it exists, or when a folder given cannot be read."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UserError(f"A name must hold letters, digits, dots, dashes and underscores only; '{name}' does not.")
    place = paths.PROFILES / f"{name}.yaml"
    if place.exists():
        raise UserError(f"{place.name} exists already; choose another name or edit it.")
    files.write_text(place, text(name, target, drafter, pythons or ["python3"]))
    try:
        load(name)
    except UserError:
        place.unlink()
        raise
    print(f"{place.relative_to(paths.ROOT)} is written: read its comments, then")
    print(f"  python -m runners preflight --profile {name}\n  make plan PROFILE={name}\n  make report PROFILE={name}")
    return 0


def text(name: str, target: str | None, drafter: str | None, pythons: list[str]) -> str:
    """The profile's YAML."""
    found = gpus.found() or []
    engines = _engines(pythons)
    lines = [
        "# Written by new-profile for this machine. Lines marked CHECK hold examples: fill them in.",
        f"title: {json.dumps(_title(target, found))}",
        *_hardware(found),
        *_target(target),
        *_drafter(drafter),
        *_engine_lines(engines, len(found)),
        *_configurations(engines, bool(drafter)),
        *_workload(bool(found)),
    ]
    return "\n".join(lines) + "\n"


def _drafter(drafter: str | None) -> list[str]:
    if drafter is None:
        return []
    folder = Path(drafter).resolve()
    if not (folder / "config.json").is_file():
        raise UserError(f"--drafter {folder} must be a drafter's folder, and has no config.json; give another.")
    return ["drafters:", "  eagle3:", f"    path: {json.dumps(str(folder))}"]


def _title(target: str | None, found: list[gpus.Gpu]) -> str:
    where = f"{len(found)} x {found[0].name}" if found else f"{os.cpu_count()} CPU cores"
    return f"{Path(target).name if target else 'a target'} on {where}"


def _hardware(found: list[gpus.Gpu]) -> list[str]:
    memory = psutil.virtual_memory().total / 2**30
    if not found:
        what = f"{os.cpu_count()} CPU cores, {memory:.0f} GiB of memory; no GPU was found"
        return ["hardware:", f"  description: {what}", f"  cpu_cores: {os.cpu_count()}", *AT_ONCE]
    return [
        "hardware:",
        f"  description: {len(found)} x {found[0].name}, driver {found[0].driver}, {memory:.0f} GiB of host memory",
        *AT_ONCE,
        f"  gpus: {len(found)}",
        f"  gpu_name: {found[0].name}",
        f"  gpu_memory_gib: {found[0].memory_gib:.0f}",
    ]


def _target(target: str | None) -> list[str]:
    if target is None:
        return [
            "target:                    # CHECK: every line; `--model FOLDER` fills them in",
            "  name: my-model",
            "  precision: BF16",
            "  layers: 32",
            "  hidden_size: 4096",
            "  vocab_size: 128256",
            "  context_length: 8192     # of one request",
            "  bytes_on_disk: 16000000000",
            "  path: /models/my-model",
        ]
    folder = Path(target).resolve()
    if folder.suffix == ".gguf" or not (folder / "config.json").is_file():
        raise UserError(f"{folder} must be a Hugging Face folder, and has no config.json; give the model's folder.")
    config = files.read_json(folder / "config.json", dict, "copy the model again")
    inner = checkpoint.text_config(config)
    size = sum(p.stat().st_size for p in folder.glob("*.safetensors"))
    quantised = (inner.get("quantization_config") or {}).get("quant_method")
    precision = quantised or inner.get("dtype") or inner.get("torch_dtype") or "BF16"
    limit = inner.get("max_position_embeddings") or 8192
    return [
        "target:",
        f"  name: {json.dumps(folder.name)}",
        f"  precision: {precision}",
        f"  layers: {inner.get('num_hidden_layers', 0)}",
        f"  hidden_size: {inner.get('hidden_size', 0)}",
        f"  vocab_size: {inner.get('vocab_size', 0)}",
        f"  context_length: {min(limit, 8192)}     # of one request; the model's own limit is {limit}",
        f"  bytes_on_disk: {size}",
        f"  path: {json.dumps(str(folder))}",
    ]


def offered() -> dict[str, NewProfile]:
    """The engines that a profile is written for, with what to write, by port."""
    found = {kind: e.new_profile for kind, e in all_engines().items() if e.new_profile}
    return dict(sorted(found.items(), key=lambda item: item[1].port))


def _engines(pythons: list[str]) -> dict[str, tuple[str, str]]:
    """engine -> (python, version), the first interpreter that holds it."""
    found: dict[str, tuple[str, str]] = {}
    for python in pythons:
        for kind in offered():
            version = environments.installed_version(python, kind)
            if version and kind not in found:
                found[kind] = (python, version)
    return found


def _engine_lines(engines: dict[str, tuple[str, str]], count: int) -> list[str]:
    lines = ["engines:"]
    for kind, facts in offered().items():
        if engines and kind not in engines:
            continue
        python, version = engines.get(kind, ("python3", "0.0.0"))
        check = "" if kind in engines else "   # CHECK: it was not found; `--python PATH` looks there"
        lines += [f"  {kind}:", f"    version: {version}{check}", f"    python: {python}", f"    port: {facts.port}"]
        lines += [f"    flags: {{{facts.parallel_flag}: {count}}}"] if count > 1 else []
    return lines


def _configurations(engines: dict[str, tuple[str, str]], drafter: bool) -> list[str]:
    lines = ["configurations:             # the cap is always given: an engine's default depends on speculation"]
    for kind in engines or offered():
        methods = {"base": [], "ngram": ["    method: ngram", f"    k: {offered()[kind].ngram_k}"]}
        if drafter:
            methods["eagle3"] = ["    method: eagle3", "    k: 3", "    drafter: eagle3"]
        for method, extra in methods.items():
            lines += [f"  {kind}-{method}:", f"    engine: {kind}", f"    title: {kind} {method}", *extra]
            lines += ["    max_running_requests: 128"]
    return lines


def _workload(gpu: bool) -> list[str]:
    levels = LEVELS if gpu else LEVELS[:3]

    def row(value) -> str:
        return "{" + ", ".join(f"{c}: {value(c)}" for c in levels) + "}"

    requests = row(lambda c: max(2, c // (2 if gpu else 4)))
    # Between servers of one GPU box a comparison takes a start of each side, and a start is long.
    limit = "" if gpu else "minutes: 20, "
    return [
        "workload:",
        "  prompt_sets: [chat, edit]   # with `mix: {chat: 0.7, edit: 0.3}` the verdict has an answer for the mix too",
        f"  output_tokens: {256 if gpu else 64}",
        f"  concurrencies: {levels}",
        "  presets:",
        "    # rounds: most starts of a comparison; repeats: blocks of one start; requests: answers of one window.",
        "    # One start of each side decides nothing by itself: `full` pays for six.",
        f"    quick: {{{limit}rounds: {1 if gpu else 3}, repeats: {row(lambda c: 1)}, requests: {requests}}}",
        f"    full: {{rounds: 6, repeats: {row(lambda c: 2 if c <= 4 else 1)}, requests: {requests}}}",
        "budgets:                    # seconds a load phase may take before silence means a stall",
        *(f"  {kind}: {{default: 1800}}" for kind in offered()),
        "stall_seconds: 120",
        f"request_timeout_seconds: {600 if gpu else 300}",
        "gates:",
        "  equal_to_base_floor: 0.3",
        f"  check_neighbours: {'false        # a box of this size has other work on its cores' if gpu else 'true'}",
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="of the profile: runners/profiles/NAME.yaml is written")
    parser.add_argument("--model", help="the target: a Hugging Face folder or a GGUF file")
    parser.add_argument("--drafter", help="an EAGLE-3 drafter's folder")
    parser.add_argument("--python", action="append", metavar="PYTHON", help="interpreters that may hold an engine")


def main(args: argparse.Namespace) -> int:
    return write(args.name, args.model, args.drafter, args.python)
