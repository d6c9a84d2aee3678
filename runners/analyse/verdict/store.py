"""Writes verdict.json atomically and reads it back."""

import json
from pathlib import Path

from runners.analyse import results
from runners.analyse.verdict.decide import SCHEMA_VERSION, of
from runners.core import files
from runners.core.errors import UserError


def write(runs_root: str | Path, profile: str) -> dict:
    """Decide, write <runs>/<profile>/verdict.json atomically, and return the verdict."""
    verdict = of(runs_root, profile)
    text = json.dumps(verdict, indent=1, ensure_ascii=False) + "\n"
    files.write_atomic(path_of(runs_root, profile), text.encode())
    return verdict


def path_of(runs_root: str | Path, profile: str) -> Path:
    """<runs>/<profile>/verdict.json."""
    return results.home(runs_root, profile) / "verdict.json"


def load(runs_root: str | Path, profile: str) -> dict:
    """The verdict that `write` wrote; UserError when there is none or it cannot be read."""
    path = path_of(runs_root, profile)
    advice = f"run: make report PROFILE={profile}"
    if not path.is_file():
        raise UserError(f"There is no verdict for profile {profile} yet; {advice}")
    verdict = files.read_json(path, dict, advice)
    if verdict.get("schema_version") != SCHEMA_VERSION:
        raise UserError(f"{profile}/verdict.json must have schema_version {SCHEMA_VERSION}; {advice}")
    if not isinstance(verdict.get("uses"), dict) or not isinstance(verdict.get("points"), list):
        raise UserError(f"{profile}/verdict.json must have `uses` and `points`; {advice}")
    return verdict
