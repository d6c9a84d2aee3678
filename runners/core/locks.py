"""Locks between processes: one maker of a thing at a time, one campaign in a folder at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.core.errors import UserError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One maker at a time, across processes; the lock goes with the process that held it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One run at a time writes into a profile's folder, and has the machine to itself; UserError for a second."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"Another run is measuring into {folder}; wait for it or stop it.") from error
        yield
