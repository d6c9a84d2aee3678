"""Writes verdict.json atomically and reads it back."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from runners.analyse import results
from runners.analyse.verdict import shape
from runners.core import files
from runners.core.errors import UserError
from runners.profiles.load import argument

SCHEMA_VERSION = 2  # 1: a winner over all workloads pooled


def write(runs_root: str | Path, profile: str, verdict: dict) -> None:
    """<runs>/<profile>/verdict.json from `decide.of`, written atomically."""
    text = json.dumps(verdict, indent=1, ensure_ascii=False) + "\n"
    files.write_atomic(path_of(runs_root, profile), text.encode())


def path_of(runs_root: str | Path, profile: str) -> Path:
    """<runs>/<profile>/verdict.json."""
    return results.home(runs_root, profile) / "verdict.json"


def load(runs_root: str | Path, profile: str) -> dict:
    """The verdict that `write` wrote; UserError when there is none or it cannot be read."""
    verdict = _read(runs_root, profile)
    if verdict.get("schema_version") != SCHEMA_VERSION:
        wanted = f"must have schema_version {SCHEMA_VERSION}, and it has {verdict.get('schema_version')}"
        raise UserError(f"{profile}/verdict.json {wanted}; {_advice(profile)}")
    if not isinstance(verdict.get("answers"), list) or not isinstance(verdict.get("points"), list):
        raise UserError(f"{profile}/verdict.json must have `answers` and `points`; {_advice(profile)}")
    if odd := shape.fault(verdict):
        raise UserError(f"{profile}/verdict.json: {odd}; {_advice(profile)}")
    return verdict


def is_older(runs_root: str | Path, profile: str) -> bool:
    """Whether the verdict there was written by an earlier version, whose file holds other things."""
    version = _read(runs_root, profile).get("schema_version")
    return isinstance(version, int) and version < SCHEMA_VERSION


def _read(runs_root: str | Path, profile: str) -> dict:
    path = path_of(runs_root, profile)
    if not path.is_file():
        raise UserError(f"There is no verdict for profile {profile} yet; {_advice(profile)}")
    return files.read_json(path, dict, _advice(profile))


def _advice(profile: str) -> str:
    return f"run: make report PROFILE={argument(profile)}"


def plain(value: Any) -> Any:
    """JSON's own types, numbers to six significant figures, NaN as null: a diff of the file shows changes alone."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool | str):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return value
    if pd.isna(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.6g}")
