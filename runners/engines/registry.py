"""The engines by name."""

import importlib
from types import ModuleType

from runners.core.errors import UserError

KINDS = ("llamacpp", "vllm", "sglang")


def engine(kind: str) -> ModuleType:
    """The engine's module: `arguments`, `ENV`, `HEALTH_PATH`, `PLACE_FIELD`, `program`, `request_fields`."""
    if kind not in KINDS:
        raise UserError(f"No engine '{kind}'; there are {', '.join(KINDS)}.")
    return importlib.import_module(f"runners.engines.{kind}")
