"""Run one of runners/scripts in an engine's environment: torch and the engines live there, never here."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runners.core.errors import UserError
from runners.core.paths import SCRIPTS
from runners.engines import environments


def ask_script(name: str, asked: dict) -> Any:
    """Run scripts/<name>.py REQUEST RESULT and return what it told; files of this call alone, so calls may overlap."""
    with tempfile.TemporaryDirectory() as scratch:
        request, result = Path(scratch) / "request.json", Path(scratch) / "result.json"
        request.write_text(json.dumps(asked))
        run_script(name, [request, result], lambda _: None)
        return json.loads(result.read_text())


def run_script(name: str, words: list, say: Callable[[str], None], environment: str = "reference") -> None:
    """Run scripts/<name>.py in an engine's environment and pass its lines on; UserError with its last words."""
    python = environments.ensure(environment, say)
    # Every core: a caller's OMP_NUM_THREADS is meant for something else.
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    argv = [str(python), str(SCRIPTS / f"{name}.py"), *map(str, words)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    last = ""
    try:
        for line in child.stdout:
            last = line.strip() or last
            say(line.rstrip())
    finally:
        if child.poll() is None:
            child.terminate()
        child.wait()
    if child.returncode != 0:
        raise UserError(f"{name} stopped: {last[:300]}; run the same command again to go on.")
