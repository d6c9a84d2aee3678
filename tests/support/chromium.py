"""Debian's chromium on one page of the built book: from file://, without a network."""

import os
import signal
import subprocess
from pathlib import Path

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]


def browser(page: Path, profile: Path, *arguments: str, seconds: float = 120) -> str:
    """The page's document after its scripts ran, with no host name resolvable."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=20000", *arguments]
    # Its own session: chromium's helpers must not outlive a test that ran into the time limit.
    with subprocess.Popen(
        [*command, "--dump-dom", page.as_uri()],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            return process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
