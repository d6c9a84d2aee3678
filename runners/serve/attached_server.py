"""A server that was there before us: read and measured like our own, never started or stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from runners.core.errors import UserError
from runners.core.progress import Progress, quiet
from runners.serve.running_server import PhaseSpan


class AttachedServer:
    """A `RunningServer` known by its address alone."""

    attached = True
    log_path: Path | None = None

    def __init__(self, base_url: str, health_path: str):
        self.base_url, self._health_path = base_url.rstrip("/"), health_path
        self.timeline: list[PhaseSpan] = []
        self.ready_seconds = 0.0

    def health(self) -> int:
        """The HTTP status of its health check; raises httpx's errors when nothing answers."""
        # trust_env=False: a proxy named in the environment must not stand between us and the server.
        return httpx.get(self.base_url + self._health_path, timeout=10, trust_env=False).status_code

    def alive(self) -> bool:
        """True whatever it answers. No answer in time counts too: a long prefill keeps the health check waiting."""
        try:
            self.health()
        except httpx.ReadTimeout:
            return True
        except (httpx.TransportError, httpx.InvalidURL):
            return False
        return True

    def snapshot(self) -> None:
        """None: its processes are not ours to look at, and may be on another machine."""

    def pids(self) -> list[int]:
        """None of its processes are ours."""
        return []

    def cause(self) -> tuple[str, str] | None:
        """Only whether it still answers: its log is not ours to read."""
        return None if self.alive() else (f"{self.base_url} does not answer any more", "other")


@contextmanager
def attach(base_url: str, health_path: str = "/health", progress: Progress = quiet) -> Iterator[AttachedServer]:
    """The server at this address, left running afterwards.

    UserError when nothing answers there, or not with 200: it is still loading, or it is something else.
    """
    server = AttachedServer(base_url, health_path)
    url = server.base_url + health_path
    try:
        status = server.health()
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise UserError(f"No server answers at {url}; start it, or correct `attach.url` in the profile.") from error
    if status != 200:
        raise UserError(f"{url} answers {status}; wait until it is ready, or correct `attach.url` in the profile.")
    progress(f"attached to {base_url}")
    yield server
