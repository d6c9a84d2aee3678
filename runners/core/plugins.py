"""Engines from outside the checkout: a folder named by SPECVERDICT_PLUGINS.

FOLDER/engines/NAME.py     exports ENGINE (runners/engines/engine.py explains it)
FOLDER/engines/NAME.txt    the pinned packages of its environment, where we make it
FOLDER/readers/NAME.py     reads its log and its /metrics (runners/readers/registry.py lists the functions)
"""

import functools
import importlib.util
import os
from pathlib import Path
from types import ModuleType

from runners.core.errors import UserError


def folder() -> Path | None:
    """The folder of plug-ins; None where the variable is not set. UserError when it is not a folder."""
    named = os.environ.get("SPECVERDICT_PLUGINS")
    if not named:
        return None
    path = Path(named).expanduser().resolve()
    if not path.is_dir():
        raise UserError(f"SPECVERDICT_PLUGINS must name a folder, and {path} is not one; correct or unset it.")
    return path


def files(room: str, suffix: str = ".py") -> dict[str, Path]:
    """Name -> file of every plug-in of one room (`engines` or `readers`), sorted by name."""
    place = folder()
    return {p.stem: p for p in sorted((place / room).glob(f"*{suffix}"))} if place else {}


@functools.cache
def load(path: Path) -> ModuleType:
    """The module in that file, run once in a process. UserError when it cannot be imported."""
    spec = importlib.util.spec_from_file_location(f"specverdict_plugin_{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} must be a Python file.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a plug-in is somebody else's code: whatever it raises is reported in one sentence
        raise UserError(f"{path} cannot be imported ({type(error).__name__}: {error}); correct it.") from error
    return module
