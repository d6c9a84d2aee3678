"""Start a server, wait until it answers, and bring its whole process group down when the context ends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.core import secrets
from runners.core.errors import UserError
from runners.core.progress import Progress, quiet
from runners.serve.server_process import Launch, LaunchedServer
from runners.serve.wait_until_ready import wait_until_ready

GUARDIAN = Path(__file__).with_name("supervisor.py")
# What an engine may know of our environment; the rest is named in the profile.
INHERITED = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES"),
    *("LC_CTYPE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "HF_HOME"),
)


@contextmanager
def serve(launch: Launch, progress: Progress = quiet) -> Iterator[LaunchedServer]:
    """Start, wait until it answers, yield it, bring the whole group down.

    Raises UserError (no such program or folder), ServerDied, ServerStalled (both in wait_until_ready.py).
    """
    if launch.cwd is not None and not launch.cwd.is_dir():
        raise UserError(f"{launch.name}: its working folder {launch.cwd} does not exist; make it or name another.")
    env = {k: os.environ[k] for k in INHERITED if k in os.environ} | launch.env
    hidden = _secrets_of(launch)
    flags = ["--log", str(launch.log_path.absolute()), "--grace", str(launch.grace_seconds)]
    flags += ["--masked", "--"] if hidden else ["--"]
    guardian = subprocess.Popen(
        # -I: isolated from the engine's variables, a PYTHONPATH among them.
        [sys.executable, "-I", str(GUARDIAN), *flags, *launch.argv],
        cwd=launch.cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        start_new_session=True,  # Ctrl-C reaches us, not the guardian; our end of its input then closes
    )
    try:
        _hand_over(hidden, guardian)
        server = LaunchedServer(launch, guardian)
    except BaseException:
        if guardian.stdin:
            guardian.stdin.close()  # there is no object yet that could end it; the guardian does it alone
        raise
    try:
        wait_until_ready(server, progress)
        yield server
    finally:
        # A second Ctrl-C must not interrupt the bringing down: the guardian goes on without us.
        server.bring_down(progress)


def _secrets_of(launch: Launch) -> list[str]:
    """What the engine is given that must not stand in its log, in every spelling."""
    secrets.learn_words(launch.argv)
    secrets.learn_from(launch.env)
    given = "\n".join([*launch.argv, *launch.env.values()])
    return list(secrets.known()) if secrets.masked(given) != given else []


def _hand_over(hidden: list[str], guardian: "subprocess.Popen[bytes]") -> None:
    """By its input: its environment is the one that the engine gets."""
    if hidden and guardian.stdin:
        guardian.stdin.write(json.dumps(hidden).encode() + b"\n")
        guardian.stdin.flush()
