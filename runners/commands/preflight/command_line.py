"""Command lines parsed by the engines' own argument parsers, without a GPU and without starting anything.

A parser comes from the engine's own Python, from an installed package's source, from the release's wheel, or from our
own starter of an engine (`Engine.parsing` says which). A typo in a flag fails with the parser's own message.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from runners.core.errors import EngineUnavailable, UserError
from runners.core.finding import Finding
from runners.core.paths import SCRIPTS
from runners.engines import environments
from runners.engines.engine import Engine
from runners.engines.registry import all_engines
from runners.profiles.profile import Profile
from runners.profiles.schema import EngineSpec
from runners.serve import scripts
from runners.serve.planned_start import planned_start
from runners.serve.sglang_wheel import wheel_of

Parsed = dict[str, str]  # configuration -> "" or the parser's message
FIND = "import importlib.util as u, json, sys; s = u.find_spec(sys.argv[1]); print(json.dumps(s and s.origin))"


def check(profile: Profile, names: list[str] | None = None) -> dict[str, list[Finding]]:
    """Findings by configuration: a refused command line is a blocker, one that could not be parsed a note."""
    found: dict[str, list[Finding]] = {}
    for kind, engine in all_engines().items():
        mine = {n: c for n, c in profile.configurations.items() if c.engine == kind and not c.stands_alone}
        lines = {n: line for n in mine if (names is None or n in names) and (line := words(profile, n))}
        if not lines or engine.parsing is None:
            continue
        try:
            parsed = parse(engine, profile.engines[kind], lines)
        except (UserError, EngineUnavailable) as error:
            note = Finding("note", f"its command line was not parsed: {error}")
            found |= {name: [note] for name in lines}
            continue
        for name, message in parsed.items():
            if message:
                text = f"{kind}'s own parser refuses the command line: {message}"
                found[name] = [Finding("blocker", text, "correct the flag in the profile")]
            else:
                found[name] = [Finding("note", f"{kind}'s own parser takes the command line")]
    return found


def words(profile: Profile, name: str) -> list[str]:
    """The words after the program: what the engine's parser sees. Empty where the engine cannot serve the files, which
    configuration.py tells.
    """
    try:
        argv = planned_start(profile, name).command(port=8000).argv
    except UserError:
        return []
    return argv[next((i for i, word in enumerate(argv) if word.startswith("--")), len(argv)) :]


def parse(engine: Engine, spec: EngineSpec, lines: dict[str, list[str]], source: Path | None = None) -> Parsed:
    """Each command line by the engine's own parser: "" where it takes it, else its message.

    source: the package's folder or wheel, where the caller has it. Raises UserError when no parser is at hand, or when
    it cannot be run.
    """
    if engine.parsing is None:
        raise UserError(f"{engine.title} has no parser that runs without serving")
    request: dict[str, Any] = {"commands": lines}
    if engine.parsing.source == "starter":
        if spec.command is not None:
            raise UserError(f"its `command` is another program than the starter of {engine.title}")
        return _run(sys.executable, engine.parsing.script, request)
    if engine.parsing.source == "wheel":
        return _run(sys.executable, engine.parsing.script, request | {"source": str(source or _source(engine, spec))})
    return _run(_python(engine, spec), engine.parsing.script, request)


def _source(engine: Engine, spec: EngineSpec) -> Path:
    """The wheel of the profile's release where the cache holds it, else the folder of the installed package."""
    found = wheel_of(spec.version) or (_package(spec.python, engine.packages[0]) if spec.python else None)
    if found is None:
        raise UserError(f"no {engine.title} {spec.version} here; `specverdict audit-sglang` or pip can fetch its wheel")
    return found


def _python(engine: Engine, spec: EngineSpec) -> str:
    """The engine's own Python, else the environment we made of it where that holds the same release."""
    if spec.python and not spec.environment and _package(spec.python, engine.packages[0]):
        return spec.python
    name = spec.environment or engine.name
    if not environments.ready(name):
        raise UserError(
            f"no {engine.title} {spec.version} here; it is checked on the box, or once environment {name} is made"
        )
    pins = environments.pins(name)
    held = next((pins[package] for package in engine.packages if package in pins), "")
    if not spec.environment and held.split("+")[0] != spec.version:
        raise UserError(f"the {engine.title} here is {held}, the profile's {spec.version}")
    return str(environments.python_of(name))


def _package(python: str, name: str) -> Path | None:
    """The folder above the package that this interpreter would import (site-packages); None where it has none."""
    try:
        done = subprocess.run([python, "-c", FIND, name], capture_output=True, text=True, timeout=60)
        origin = json.loads(done.stdout or "null")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return Path(origin).parents[1] if origin else None


def _run(python: str, script: str, request: dict[str, Any]) -> Parsed:
    argv = [python, SCRIPTS / f"{script}.py"]
    parsed: Parsed = scripts.ask(argv, request, "The parser could not be run.", seconds=300)
    return parsed
