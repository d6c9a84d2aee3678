"""Folders that a script makes once: written under another name beside their path, renamed when complete."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from runners.core import checkpoint, locks
from runners.core.errors import UserError
from runners.profiles.profile import Profile
from runners.serve import scripts


def must_exist(path: str | Path, what: str, profile: Profile) -> None:
    """UserError when a path that the profile names does not exist here, or holds pickles in place of weights."""
    if not Path(path).exists():
        raise UserError(f"The {what} is not at {path}; put it there or set its path in profile {profile.name}.")
    checkpoint.refuse_pickles(Path(path), what)


def make_once(path: Path, argv: Callable[[Path], list[str]], what: str) -> Path:
    """Make a folder by one run of a program, unless it exists. Idempotent, also across processes.

    argv: the command line that writes into the folder it is given. An interruption leaves no half-made folder behind
    under `path`. UserError when the program fails; `what` names the folder in its sentence.
    """
    if path.is_dir():
        return path
    with locks.locked(path.with_suffix(".lock")):
        if path.is_dir():  # another process made it while we waited
            return path
        # In the same folder, hence on the same disk: only there is the rename atomic.
        scratch = path.with_name(path.name + ".part")
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            scripts.run(argv(scratch), f"{what} could not be made in {path.parent}.")
        except UserError:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        os.replace(scratch, path)
    return path
