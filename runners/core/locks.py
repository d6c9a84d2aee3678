"""Locks between processes: one maker of a thing at a time, one campaign in a folder at a time.

By flock(2): the kernel drops the lock when its process ends, however it ends, so no stale lock is ever left.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.core.errors import UserError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process holds this lock file, then hold it. `path` is made and stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One run at a time writes into a profile's folder. UserError for a second one: it does not wait, since two
    campaigns on one machine would disturb each other's times.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"Another run is measuring into {folder}; wait for it or stop it.") from error
        yield


def is_held(folder: Path) -> bool:
    """Is a run measuring into this folder now (`alone`)? Makes nothing and waits for nobody."""
    path = folder / ".lock"
    if not path.is_file():
        return False
    with open(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
