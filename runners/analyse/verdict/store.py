"""verdict.json: written whole or not at all, and read back."""

import json
import os
from pathlib import Path

from runners.analyse import results
from runners.analyse.verdict.decide import SCHEMA_VERSION, of
from runners.core import files
from runners.core.errors import UserError


def write(runs_root: str | Path, profile: str) -> dict:
    """Decide and write <runs>/<profile>/verdict.json, whole or not at all; returns the verdict."""
    verdict = of(runs_root, profile)
    path = place(runs_root, profile)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(verdict, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(part, path)
    return verdict


def place(runs_root: str | Path, profile: str) -> Path:
    return results.home(runs_root, profile) / "verdict.json"


def load(runs_root: str | Path, profile: str) -> dict:
    """The verdict that `write` left; UserError when there is none or it cannot be read."""
    path = place(runs_root, profile)
    advice = f"run: make report PROFILE={profile}"
    if not path.is_file():
        raise UserError(f"There is no verdict for profile {profile} yet; {advice}")
    verdict = files.read_json(path, dict, advice)
    if verdict.get("schema_version") != SCHEMA_VERSION:
        raise UserError(f"{profile}/verdict.json has another schema_version than {SCHEMA_VERSION}; {advice}")
    if not isinstance(verdict.get("uses"), dict) or not isinstance(verdict.get("points"), list):
        raise UserError(f"{profile}/verdict.json is not whole (no `uses` or `points`); {advice}")
    return verdict
