"""The command line of a configuration: what a person would type, and the environment added to it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import httpx

from runners.core.one_line import one_line
from runners.engines import environments, http
from runners.engines.engine import Files, Flags, Serving
from runners.engines.registry import engine
from runners.profiles import whole_command
from runners.profiles.profile import Profile
from runners.profiles.schema import EngineSpec


@dataclass(frozen=True)
class Command:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)


def flags_to_argv(flags: Flags) -> list[str]:
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
    """The exact command line and added environment of one configuration; no words for a server that runs already.

    Order of precedence for flags and variables: engine module, engine in the profile, configuration. Where the engine
    takes JSON (`Engine.merged_flags`), a mapping in the profile is merged into ours key by key; else it replaces ours.
    """
    chosen = profile.configuration(configuration)
    spec = profile.engines[chosen.engine]
    module = engine(chosen.engine)
    if chosen.attach is not None:  # it runs already: there is no command line of ours
        return Command([], {**module.env, **spec.env, **chosen.env})
    if chosen.command is not None:
        words, own = whole_command.split(chosen.command, port)
        return Command(words, {**own, **spec.env, **chosen.env})
    asked = serving(profile, configuration, files, port)
    flags = module.arguments(asked)
    for given in (spec.flags, chosen.flags):
        flags = module.merged(flags, given)
    program = [] if spec.command else module.program
    env = {**module.env, **module.environment(asked), **spec.env, **chosen.env}
    return Command([*interpreter(spec), *program, *flags_to_argv(flags)], env)


def serving(profile: Profile, configuration: str, files: Files, port: int) -> Serving:
    """What the configuration asks of its engine."""
    chosen = profile.configuration(configuration)
    if chosen.method == "draft_model" and chosen.drafter is None:  # the target drafts for itself
        files = replace(files, drafter_gguf=files.gguf, drafter_folder=files.folder)
    return Serving(
        target=profile.target.name,
        context_length=profile.target.context_length,
        max_running_requests=chosen.max_running_requests,
        files=files,
        host=profile.engines[chosen.engine].host,
        port=port,
        method=None if chosen.method == "none" else chosen.method,
        k=chosen.k,
        forced_accept_length=chosen.forced_accept_length,
    )


def reported_version(kind: str, base_url: str, headers: Mapping[str, str] | None = None) -> str | None:
    """The running server's own version; None when it reports none."""
    path, key = engine(kind).version_at
    try:
        with httpx.Client(timeout=10, trust_env=False) as client:
            answer = http.get(client, base_url + path, headers).json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    found = answer.get(key) if isinstance(answer, dict) else None
    return one_line(str(found)) if found else None


def slot_field(profile: Profile, name: str, concurrency: int) -> str | None:
    """The request field by which each request in flight keeps a slot of its own, where an engine has slots and more
    of them than requests are in flight; None elsewhere, and for a server whose flags we do not write.
    """
    chosen = profile.configuration(name)
    spare = 1 < concurrency < chosen.max_running_requests
    return engine(chosen.engine).slot_field if spare and not chosen.stands_alone else None
