"""Readers of the engines' logs and metric texts, one module an engine, all with the same functions.

    PHASES                                load phases a log line can name, in the usual order
    phase_of(line) -> str | None          the phase that this line says has begun
    first_error(lines)                    (cause sentence, kind) of the first real error, or None
    read_counters(metrics_text) -> Counters
    read_log(lines, num_draft_tokens=None) -> LogReading
    acceptance_of(line, ...) -> AcceptanceRecord | None

Nothing here imports an engine: everything is read from text, so a log from a box far away reads the same.
"""

from types import ModuleType

from runners.core.errors import UserError
from runners.readers import llamacpp, sglang, vllm

ENGINES = {"llamacpp": llamacpp, "vllm": vllm, "sglang": sglang}


def reader(engine: str) -> ModuleType:
    """The reader module of an engine by its name in a profile; `UserError` names those known."""
    try:
        return ENGINES[engine]
    except KeyError:
        known = ", ".join(sorted(ENGINES))
        raise UserError(f"no log reader for engine {engine!r}: use one of {known}.") from None
