"""Run a program to its end; above all the files of runners/scripts, in an engine's environment.

torch and the engines are installed in environments of their own, never in ours, and are reached as a process.
"""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runners.core import secrets
from runners.core.errors import UserError
from runners.core.paths import SCRIPTS
from runners.core.progress import Progress, quiet
from runners.engines import environments

Words = Sequence[object]  # each is written as a text


def run(argv: Words, failed: str, progress: Progress = quiet, seconds: float | None = None) -> None:
    """Run a program and pass on each line that it prints.

    UserError when it fails or takes longer than `seconds`: the sentence `failed`, then its last line.
    """
    # Every core: a caller's OMP_NUM_THREADS is meant for something else.
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    with subprocess.Popen(
        list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env
    ) as child:
        assert child.stdout is not None
        limit = threading.Timer(seconds, child.kill) if seconds else None
        if limit:
            limit.start()
        last = "no output"
        try:
            for line in child.stdout:
                last = line.strip() or last
                progress(line.rstrip())
        except BaseException:  # we were interrupted
            child.terminate()
            raise
        finally:
            if limit:
                limit.cancel()
    if child.returncode != 0:
        raise UserError(f"{failed} Its last line: {secrets.masked(last)[:300]}")


def run_script(name: str, words: Words, progress: Progress, environment: str = "reference") -> None:
    """Run scripts/<name>.py WORDS in an engine's environment, which is made if missing."""
    python = environments.ensure(environment, progress)
    run(
        [python, SCRIPTS / f"{name}.py", *words],
        f"{name} stopped; run the same command again to continue.",
        progress,
    )


def ask_script(name: str, request: dict[str, Any], words: Words = (), progress: Progress = quiet) -> Any:
    """The JSON that scripts/<name>.py WORDS REQUEST RESULT answers to a request, in the reference environment."""
    python = environments.ensure("reference", progress)
    return ask(
        [python, SCRIPTS / f"{name}.py", *words], request, f"{name} stopped; run the same command again.", progress
    )


def ask(
    argv: Words, request: dict[str, Any], failed: str, progress: Progress = quiet, seconds: float | None = None
) -> Any:
    """Run ARGV REQUEST RESULT, two JSON files, and return the result; errors and `failed` as in `run`.

    The files are of this call alone, so that calls may overlap.
    """
    with tempfile.TemporaryDirectory() as scratch:
        asked, result = Path(scratch) / "request.json", Path(scratch) / "result.json"
        asked.write_text(json.dumps(request))
        run([*argv, asked, result], failed, progress, seconds)
        if not result.is_file():
            raise UserError(f"{failed} It wrote no result.")
        return json.loads(result.read_text())
