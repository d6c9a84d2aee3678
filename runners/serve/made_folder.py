"""Folders that a script makes once: written beside their place, renamed when whole."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from runners.core import locks
from runners.core.errors import UserError
from runners.profiles.profile import Profile


def must_exist(path: str | Path, what: str, profile: Profile) -> None:
    if not Path(path).exists():
        raise UserError(f"The {what} is not at {path}; put it there or set its path in profile {profile.name}.")


def make_once(place: Path, argv: Callable[[Path], list[str]], what: str) -> Path:
    """Run a script that writes a folder, beside its place; rename it when the script succeeded."""
    if place.is_dir():
        return place
    with locks.locked(place.with_suffix(".lock")):
        if place.is_dir():
            return place
        scratch = place.with_name(place.name + ".part")
        shutil.rmtree(scratch, ignore_errors=True)
        done = subprocess.run(argv(scratch), capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(scratch, ignore_errors=True)
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise UserError(f"{what} could not be made in {place.parent}: {last[:300]}")
        os.replace(scratch, place)
    return place
