"""Readers of the engines' logs and metric texts, one module an engine, all with the same functions.

    PHASES                                load phases a log line can name, in the usual order
    phase_of(line) -> str | None          the phase that this line says has begun
    first_error(lines)                    (cause sentence, kind) of the first real error, or None
    read_counters(metrics_text) -> Counters
    read_log(lines, num_draft_tokens=None) -> LogReading
    acceptance_of(line, ...) -> AcceptanceRecord | None
    tracker() -> PhaseTracker             what trim_log keeps of a log

More where an engine needs them:

    counts_from_log(log, start, counts, requests, output_tokens, k) -> Counters     /metrics exports no counts
    read_server_info(answer) -> dict                                                 a saved /server_info
    totals_of(records) -> Counters | None             counts that its acceptance lines tell together
    MARKS                                 a plug-in's lines by which its texts are recognised (marks.py)

Nothing here imports an engine: everything is read from text, so a log from a box far away reads the same.
A reader is found by looking into this package and into the folder of plug-ins (core/plugins.py).
"""

import functools
import importlib
import pkgutil
from types import ModuleType

from runners import readers as package
from runners.core import plugins
from runners.core.errors import UserError


def names() -> list[str]:
    """Every engine that has a reader, sorted: what a profile may name as an engine."""
    return sorted(all_readers())


def all_readers() -> dict[str, ModuleType]:
    """Engine -> its reader. A plug-in with the name of one of ours takes its place."""
    return _own_readers() | {name: plugins.load(path) for name, path in plugins.files("readers").items()}


@functools.cache
def _own_readers() -> dict[str, ModuleType]:
    """A module of this package that reads no engine (records, causes ...) has no PHASES."""
    found = {
        m.name: importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)
    }
    return {name: module for name, module in found.items() if hasattr(module, "PHASES")}


def reader(engine: str) -> ModuleType:
    """The reader module of an engine by its name in a profile; `UserError` names those known."""
    known = all_readers()
    if engine not in known:
        raise UserError(f"no log reader for engine {engine!r}: use one of {', '.join(sorted(known))}.")
    return known[engine]
