"""What a run was made on and of: hardware, kernel, drivers, versions, commit, and a few variables by name."""

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from runners import __version__
from runners.core import gpus, paths

# Never the whole environment: it may hold secrets. Only what an engine inherits from us (serve/server.py, INHERITED)
# and what may change a figure; the rest is in the profile.
ALLOWED_VARIABLES = ("CUDA_VISIBLE_DEVICES", "LANG", "LC_ALL", "TZ")
PACKAGES = ("httpx", "httpx-aiohttp", "aiohttp", "pandas", "scipy", "papermill", "altair", "pydantic")


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def hardware() -> dict[str, Any]:
    """What the machine is, as far as it tells. Published cells are found by a hash of this (`identity`): the same
    machine must give the same values in every release.
    """
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    # Each core repeats the keys; the last one stands for all.
    rows = {key.strip(): value.strip() for key, colon, value in (line.partition(":") for line in lines) if colon}
    flags = rows.get("flags", "").split()
    return {
        "cpu": rows.get("model name", platform.processor()),
        # Those that decide how fast low precision matrix products are.
        "cpu_features": [f for f in ("avx2", "avx512f", "avx512_vnni", "amx_int8") if f in flags],
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "threads": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "machine": platform.machine(),
        "gpus": [_gpu_text(gpu) for gpu in gpus.found() or []],
    }


def _gpu_text(gpu: gpus.Gpu) -> str:
    """As nvidia-smi writes it ("NVIDIA H200, 143771 MiB"): earlier releases asked that program, and the text is part of
    a machine's identity.
    """
    return f"{gpu.name}, {int(gpu.memory_gib * 1024)} MiB"


@functools.cache
def machine_id() -> str:
    """This machine's `identity`: cells of another machine must not be taken for this one's."""
    return identity(hardware())


def identity(recorded: dict[str, Any]) -> str:
    """Eight hex digits of what `hardware` gave, here or elsewhere. The host's memory is left out: it differs by a few
    pages from boot to boot.
    """
    # Of the recorded dict, and sorted: environment.json of another machine gives the identity it has there.
    known = {k: v for k, v in recorded.items() if k != "memory_gib"}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:8]


def git_commit() -> str | None:
    """The commit, with `+changes` when files below runners/ differ from it; None outside a checkout."""
    try:
        where = ["git", "-C", str(paths.ROOT)]
        commit = subprocess.run([*where, "rev-parse", "HEAD"], capture_output=True, text=True)
        # Not of the whole checkout: a campaign itself writes below data/ while it runs.
        dirty = subprocess.run([*where, "diff", "--quiet", "HEAD", "--", "runners"], capture_output=True)
    except OSError:
        return None
    if commit.returncode != 0:
        return None
    return commit.stdout.strip() + ("+changes" if dirty.returncode else "")


def collect() -> dict[str, Any]:
    """Everything but what belongs to one engine; written as environment.json beside the cells."""
    return {
        "recorded_at": now(),
        "specverdict": __version__,
        "commit": git_commit(),
        "hardware": hardware(),
        "kernel": platform.release(),
        "gpu_drivers": sorted({gpu.driver for gpu in gpus.found() or []}),
        "python": platform.python_version(),
        "clock": "time.perf_counter",
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "variables": {name: os.environ[name] for name in ALLOWED_VARIABLES if name in os.environ},
    }
