"""The engines of this machine that a new profile can be written for."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from runners.core.errors import UserError
from runners.core.format import listed
from runners.engines import environments
from runners.engines.engine import Box, Form
from runners.engines.registry import all_engines


@dataclass(frozen=True)
class Found:
    """How an engine is reached: by an interpreter that holds it, or by an environment of ours, made when it is needed.

    seen: False for an example that a person must fill in.
    """

    version: str
    python: str | None = None
    environment: str | None = None
    seen: bool = True


def find(
    pythons: Sequence[str] | None, gpus: int, forms: Collection[Form], only: Collection[str] | None = None
) -> dict[str, Found]:
    """Engine -> how it is reached, of those that serve one of these forms on such a machine.

    pythons: interpreters that may hold one (None: python3 of the path). only: these engines. On a machine without GPUs
    an environment of ours, ready on this machine, counts as well; where nothing else is found one that can be made
    does. UserError for an interpreter that was named and holds none, and for an engine that was named and is not found.
    """
    offered = _offered(gpus, only)
    serving = {kind for kind in offered if all_engines()[kind].serves in forms}
    if not serving:
        needs = "a Hugging Face folder" if "folder" not in forms else "a GGUF file"
        raise UserError(f"{listed(offered)} needs the target as {needs}; give that form too.")
    found: dict[str, Found] = {}
    for python in pythons or ["python3"]:
        held = {kind: version for kind in offered if (version := environments.installed_version(python, kind))}
        if pythons and not held:
            raise UserError(f"--python {python} holds none of {listed(offered)}; give the one that runs the engine.")
        found = {kind: Found(version, python=python) for kind, version in held.items()} | found
    if not gpus:
        ready = [kind for kind in serving - set(found) if environments.ready(kind)]
        found |= {kind: _ours(kind) for kind in ready}
        if not set(found) & serving or only:
            found |= {kind: _ours(kind) for kind in serving - set(found)}
    missing = sorted(set(only or ()) & serving - set(found))
    if missing:
        raise UserError(f"no {missing[0]} was found on this machine; name the interpreter that holds it by --python.")
    usable = {kind: found[kind] for kind in offered if kind in found and kind in serving}
    if not usable:
        return {kind: Found("0.0.0", python="python3", seen=False) for kind in offered if kind in serving}
    return usable


def left_out(found: Collection[str], pythons: Sequence[str] | None, gpus: int) -> dict[str, Form]:
    """Engines that this machine has and the model's forms do not suit, with the form that each of them serves."""
    held = {
        kind
        for kind in _offered(gpus, None)
        if kind not in found
        and (any(environments.installed_version(p, kind) for p in pythons or ["python3"]) or _is_ready(kind, gpus))
    }
    return {kind: all_engines()[kind].serves for kind in sorted(held)}


def cores() -> int:
    """Cores that a server may use."""
    return os.cpu_count() or 1


def _offered(gpus: int, only: Collection[str] | None) -> list[str]:
    """The engines that a profile is written for on such a machine. UserError for a name that is none of them."""
    box = Box(gpus=gpus, cores=cores(), cache_gib=1)
    facts = {kind: e.new_profile for kind, e in all_engines().items() if e.new_profile is not None}
    known = [kind for kind, fact in facts.items() if fact.settings(box) is not None]
    unknown = [name for name in only or () if name not in known]
    if unknown:
        where = "a machine with GPUs" if gpus else "a machine without GPUs"
        raise UserError(f"--engine {unknown[0]} must be one of {listed(known)} on {where}; name one of them.")
    return [kind for kind in known if not only or kind in only]


def _is_ready(kind: str, gpus: int) -> bool:
    return not gpus and environments.ready(kind)


def _ours(kind: str) -> Found:
    """The pinned environment of an engine; its version without the build's mark (0.32.0+cpu)."""
    pins = environments.pins(kind)
    held = next((pins[package] for package in all_engines()[kind].packages if package in pins), "")
    return Found(held.split("+")[0], environment=kind)
