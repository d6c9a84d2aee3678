"""The engines: each is one small file that says how it is started, asked and read.

Nothing here imports an engine. A `Command` is what a person would type; `Files` is where the weights lie.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from runners.engines import environments
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.profiles.schema import Configuration, EngineSpec


@dataclass(frozen=True)
class Files:
    """Paths an engine may serve from; None where this box has no such form."""

    gguf: Path | None = None
    folder: Path | None = None
    drafter_gguf: Path | None = None
    drafter_folder: Path | None = None


@dataclass(frozen=True)
class Command:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)


def flags_to_argv(flags: dict[str, Any]) -> list[str]:
    """{"max-num-seqs": 16, "enforce-eager": True} -> --max-num-seqs 16 --enforce-eager.

    A mapping becomes JSON; False drops the flag (so that a configuration can undo its engine's).
    """
    argv: list[str] = []
    for name, value in flags.items():
        if value is False or value is None:
            continue
        argv.append(f"--{name}")
        if value is True:
            continue
        argv.append(json.dumps(value) if isinstance(value, dict | list) else str(value))
    return argv


def interpreter(spec: EngineSpec) -> list[str]:
    """The words before the program: an environment's python, a named python, or a whole command."""
    if spec.command:
        return list(spec.command)
    return [spec.python or str(environments.python_of(spec.environment or ""))]


def command(profile: Profile, configuration: str, files: Files, port: int) -> Command:
    """The exact command line and added environment of one configuration.

    Order of precedence for flags and variables: engine module, engine in the profile, configuration.
    """
    chosen: Configuration = profile.configuration(configuration)
    spec = profile.engines[chosen.engine]
    module = engine(chosen.engine)
    if chosen.method == "draft_model" and chosen.drafter is None:  # the target drafts for itself
        files = replace(files, drafter_gguf=files.gguf, drafter_folder=files.folder)
    flags = module.arguments(profile, chosen, files, spec.host, port) | spec.flags | chosen.flags
    program = [] if spec.command else module.program()
    own = module.environment(chosen) if hasattr(module, "environment") else {}
    env = module.ENV | own | spec.env | chosen.env
    return Command([*interpreter(spec), *program, *flags_to_argv(flags)], env)


def reported_version(kind: str, base_url: str) -> str | None:
    """What the running server says of its own version; None when it does not tell."""
    path, key = engine(kind).VERSION
    try:
        answer = httpx.get(base_url + path, timeout=10, trust_env=False).json()
    except (httpx.HTTPError, ValueError):
        return None
    found = answer.get(key) if isinstance(answer, dict) else None
    return str(found) if found else None


def slot_field(profile: Profile, name: str, concurrency: int) -> str | None:
    """The request field by which each place of the closed loop keeps a slot of its own, where an engine has slots and
    more of them than are asked for at once; None elsewhere, and for a server that is not ours.
    """
    chosen = profile.configuration(name)
    spare = 1 < concurrency < chosen.max_running_requests
    return engine(chosen.engine).PLACE_FIELD if spare and chosen.attach is None else None
