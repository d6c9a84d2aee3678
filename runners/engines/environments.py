"""Engine environments: made once per content hash of a pinned file, in a cache outside the checkout.

An engine is never imported here: it has its own virtual environment and is reached by command line and HTTP, as on a
real box. An environment is complete only when its marker file is there: an installation that was interrupted leaves a
folder without one, which is made again.
"""

import hashlib
import json
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from runners.core import paths, plugins
from runners.core.errors import EngineUnavailable
from runners.core.locks import locked
from runners.engines.registry import engine

MARKER = "complete.json"


def pinned_file(name: str) -> Path:
    """`runners/engines/<name>.txt`, or a plug-in's; EngineUnavailable when there is none."""
    known = {p.stem: p for p in sorted(paths.ENGINES.glob("*.txt"))} | plugins.files("engines", ".txt")
    if name not in known:
        raise EngineUnavailable(f"No pinned file for the environment '{name}' (known: {', '.join(known)}); add one.")
    return known[name]


def pins(name: str) -> dict[str, str]:
    """Package name (lower case) -> pinned version."""
    rows = (line.split("#")[0].strip() for line in pinned_file(name).read_text().splitlines())
    return {r.split("==")[0].lower(): r.split("==")[1] for r in rows if "==" in r}


def pip_options(name: str) -> list[str]:
    """Options that the pinned file asks for, in a line `# pip: --no-deps`."""
    for line in pinned_file(name).read_text().splitlines():
        if line.startswith("# pip:"):
            return line.removeprefix("# pip:").split()
    return []


def folder(name: str) -> Path:
    """Where this environment is, or will be. Its name holds a hash of the pins, the Python version and the processor's
    architecture: change one, and another environment is made beside it.
    """
    facts = f"{pinned_file(name).read_text()}\n{platform.python_version()}\n{platform.machine()}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:12]
    return paths.cache() / "environments" / f"{name}-{digest}"


def ready(name: str) -> bool:
    """True when the environment is complete."""
    return (folder(name) / MARKER).is_file()


def python_of(name: str) -> Path:
    """The environment's interpreter (it may not exist yet: see `ensure`)."""
    return folder(name) / "bin" / "python"


def ensure(name: str, progress: Callable[[str], None] = lambda _: None) -> Path:
    """Make the environment if it is not complete; return its interpreter. Idempotent, and safe beside other processes.

    Raises EngineUnavailable, in one sentence, when it cannot be made; the incomplete folder is then removed.
    """
    if ready(name):
        return python_of(name)
    where = folder(name)
    with locked(where.with_suffix(".lock")):
        if ready(name):  # another process made it while we waited
            return python_of(name)
        shutil.rmtree(where, ignore_errors=True)
        progress(f"environment {name}: installing {len(pins(name))} pinned packages (once per machine)")
        began = time.monotonic()
        log = where.with_suffix(".log")
        try:
            _install(name, where, log)
        except BaseException:
            shutil.rmtree(where, ignore_errors=True)
            raise
        facts = {"pinned_file": f"{name}.txt", "python": sys.version.split()[0], "made_s": time.monotonic() - began}
        (where / MARKER).write_text(json.dumps(facts))
        progress(f"environment {name}: ready after {facts['made_s']:.0f} s")
    return python_of(name)


def _install(name: str, where: Path, log: Path) -> None:
    steps = [
        [sys.executable, "-m", "venv", str(where)],
        [
            str(where / "bin" / "python"),
            *("-m", "pip", "install", "--no-input", "--no-color", "--disable-pip-version-check"),
            *pip_options(name),
            *("-r", str(pinned_file(name))),
        ],
    ]
    with open(log, "w") as out:
        for step in steps:
            try:
                code = subprocess.run(step, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL).returncode
            except OSError as error:
                raise EngineUnavailable(f"Environment {name}: {step[0]} could not be started ({error}).") from error
            if code != 0:
                raise EngineUnavailable(explain(name, log.read_text(errors="replace"), log))


def explain(name: str, output: str, log: Path) -> str:
    """One sentence about a failure of pip, from its output: what failed and what to set. The log holds the rest."""
    lines = output.splitlines()
    missing = next((line for line in lines if "No matching distribution found" in line), "")
    wanted = missing.rsplit(" ", 1)[-1]
    unreachable = (
        *("NewConnectionError", "ConnectTimeoutError", "Connection refused", "Network is unreachable", "ProxyError"),
        *("Name or service not known", "Temporary failure in name resolution", "SSLError"),
    )
    # Without a network pip also ends in "No matching distribution": the connection is then the real cause.
    if any(word in output for word in unreachable):
        return (
            f"Environment {name}: the package index is unreachable; set PIP_INDEX_URL (or PIP_FIND_LINKS to a folder "
            f"of wheels) and run the same command again (pip's output: {log})."
        )
    if "+cpu" in wanted:
        return (
            f"Environment {name}: pip finds no {wanted}, PyTorch's CPU build; set PIP_EXTRA_INDEX_URL to PyTorch's CPU "
            f"wheel index, or PIP_FIND_LINKS to a folder that holds the wheel (pip's output: {log})."
        )
    if missing:
        return (
            f"Environment {name}: pip finds no {wanted} for Python {platform.python_version()} (pip's output: {log})."
        )
    if "No space left on device" in output:
        return f"Environment {name}: the disk of {paths.cache()} is full; free some space or set SPECVERDICT_CACHE."
    last = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "no output")
    return f"Environment {name}: pip failed ({last.strip()[:200]}); its output is in {log}."


ASK_VERSION = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


def installed_version(python: str, kind: str) -> str | None:
    """The version of an engine's package in the environment of this interpreter; None when it has none."""
    for package in engine(kind).packages:
        try:
            done = subprocess.run([python, "-c", ASK_VERSION, package], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode == 0:
            return done.stdout.strip()
    return None
