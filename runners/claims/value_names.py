"""How the parts of a named value's name are written."""

from typing import Any

from runners.core import format


def word(text: Any) -> str:
    """One part of a name: letters, digits and underscores; `+` becomes `plus`, so that `boundary+1` stays apart."""
    return format.slug(str(text).replace("+", "plus"))


def point(prefix: str, configuration: str, workload: str, concurrency: int) -> str:
    """The name of a workload point, for example `run.vllm_base.chat.c1`."""
    return f"{prefix}.{word(configuration)}.{word(workload)}.c{concurrency}"
