"""The engines by name: each module of this package, and of the folder of plug-ins, that exports an `ENGINE`."""

import functools
import importlib
import pkgutil
from types import ModuleType

from runners import engines as package
from runners.core import plugins
from runners.core.errors import UserError
from runners.engines.engine import Engine


def all_engines() -> dict[str, Engine]:
    """Engine by name, sorted. A plug-in with the name of one of ours takes its place."""
    modules = [*_own_modules(), *(plugins.load(path) for path in plugins.files("engines").values())]
    found = [module.ENGINE for module in modules if isinstance(getattr(module, "ENGINE", None), Engine)]
    return {e.name: e for e in sorted(found, key=lambda e: e.name)}


@functools.cache
def _own_modules() -> tuple[ModuleType, ...]:
    found = pkgutil.iter_modules(package.__path__)
    return tuple(importlib.import_module(f"{package.__name__}.{module.name}") for module in found)


def names() -> list[str]:
    return list(all_engines())


def engine(name: str) -> Engine:
    """The engine of that name; UserError names those known."""
    known = all_engines()
    if name not in known:
        raise UserError(f"No engine '{name}'; there are {', '.join(known)}.")
    return known[name]
