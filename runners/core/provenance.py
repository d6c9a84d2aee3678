"""What a run was made on and of: hardware, kernel, drivers, versions, commit. Variables by allow-list only."""

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
from runners.core import paths
from runners.core.errors import UserError

# Never a whole environment: it may hold secrets.
# Only what an engine inherits from us (server.INHERITED) and what may change a figure; the rest stands in the profile.
ALLOWED_VARIABLES = ("CUDA_VISIBLE_DEVICES", "LANG", "LC_ALL", "TZ")


PACKAGES = ("httpx", "httpx-aiohttp", "aiohttp", "pandas", "scipy", "papermill", "altair", "pydantic")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def hardware() -> dict[str, Any]:
    """What the machine is, as far as it says so itself; GPUs by nvidia-smi when that is there."""
    info = Path("/proc/cpuinfo")
    rows = dict(
        (part.strip() for part in line.split(":", 1)) for line in info.read_text().splitlines() if ":" in line
    ) if info.is_file() else {}  # fmt: skip
    flags = rows.get("flags", "").split()
    return {
        "cpu": rows.get("model name", platform.processor()),
        "cpu_features": [f for f in ("avx2", "avx512f", "avx512_vnni", "amx_int8") if f in flags],
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "threads": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "machine": platform.machine(),
        "gpus": _gpus("name,memory.total"),
    }


def _gpus(what: str) -> list[str]:
    """One text a GPU; none without nvidia-smi. One that hangs is an error, not a machine without GPUs."""
    query = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired as error:
        raise UserError("nvidia-smi has not answered for 60 s; see to the GPU driver and run again.") from error
    except OSError:
        return []
    return done.stdout.strip().splitlines() if done.returncode == 0 else []


@functools.cache
def machine_id() -> str:
    """This machine's `identity`, so that cells of another machine are not taken for this one's."""
    return identity(hardware())


def identity(recorded: dict[str, Any]) -> str:
    """A short hash of what `hardware` gave here or elsewhere; the memory is left out, it differs by a page or two."""
    known = {k: v for k, v in recorded.items() if k != "memory_gib"}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:8]


def git_commit() -> str | None:
    """The commit, with `+changes` when tracked files differ from it; None outside a checkout."""
    try:
        where = ["git", "-C", str(paths.ROOT)]
        commit = subprocess.run([*where, "rev-parse", "HEAD"], capture_output=True, text=True)
        dirty = subprocess.run([*where, "diff", "--quiet", "HEAD", "--", "runners"], capture_output=True)
    except OSError:
        return None
    if commit.returncode != 0:
        return None
    return commit.stdout.strip() + ("+changes" if dirty.returncode else "")


def collect() -> dict[str, Any]:
    """Everything but what belongs to one engine."""
    return {
        "recorded_at": now(),
        "specverdict": __version__,
        "commit": git_commit(),
        "hardware": hardware(),
        "kernel": platform.release(),
        "gpu_drivers": sorted(set(_gpus("driver_version"))),
        "python": platform.python_version(),
        "clock": "time.perf_counter",
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "variables": {name: os.environ[name] for name in ALLOWED_VARIABLES if name in os.environ},
    }
