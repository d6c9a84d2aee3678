"""A server that was there before us: read and measured like our own, never started or stopped."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from runners.core import secrets
from runners.core.errors import UserError
from runners.core.progress import Progress, quiet
from runners.profiles.attach import Attach
from runners.serve.running_server import PhaseSpan

MODELS = "/v1/models"  # what every server with OpenAI's interface answers, behind a gateway too
NO_KEY = (401, 403)
NO_SUCH_PATH = (404, 405, 501)
KEY_WANTED = "it wants an API key: name the variable that holds it (`attach.api_key_env`, --api-key-env)"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class AttachedServer:
    """A `RunningServer` known by its address alone."""

    attached = True
    log_path: Path | None = None

    def __init__(self, base_url: str, health_path: str, headers: Mapping[str, str] | None = None):
        self.base_url, self._health_path = base_url.rstrip("/"), health_path
        self._headers = dict(headers or {})
        self.timeline: list[PhaseSpan] = []
        self.ready_seconds = 0.0

    def status(self, path: str) -> int:
        """The HTTP status of a path; raises httpx's errors when nothing answers."""
        # trust_env=False: a proxy named in the environment must not stand between us and the server.
        # The body is left unread: it may have no end.
        with httpx.stream("GET", self.base_url + path, headers=self._headers, timeout=10, trust_env=False) as answer:
            return answer.status_code

    def health(self) -> int:
        """The status of its health check; of its list of models where a gateway has no health check."""
        found = self.status(self._health_path)
        return self.status(MODELS) if found in NO_SUCH_PATH else found

    def alive(self) -> bool:
        """True whatever it answers. No answer in time counts too: a long prefill keeps the health check waiting."""
        try:
            self.status(self._health_path)
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


def request_headers(attach: Attach | None) -> dict[str, str]:
    """The headers of each request to a server that runs already: its key and what the profile adds, variables read.

    UserError for a variable that is not set. None of a server that we start.
    """
    if attach is None:
        return {}
    found = {name: _VARIABLE.sub(lambda m: _variable(m[1]), value) for name, value in attach.headers.items()}
    secrets.learn_from(attach.headers)
    if attach.api_key_env is not None:
        found["Authorization"] = f"Bearer {_variable(attach.api_key_env)}"
    return found


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise UserError(f"The environment variable {name} must hold the server's key and is not set; export it.")
    secrets.learn(value)  # whatever the variable's name is
    return value


@contextmanager
def attach(
    base_url: str,
    health_path: str = "/health",
    progress: Progress = quiet,
    headers: Mapping[str, str] | None = None,
) -> Iterator[AttachedServer]:
    """The server at this address, left running afterwards.

    UserError when nothing answers there, or not with 200: it is still loading, wants a key, or is something else.
    """
    server = AttachedServer(base_url, health_path, headers)
    url = server.base_url + health_path
    try:
        status = server.health()
        # A server may guard what it serves and not its health check.
        status = models if status == 200 and (models := server.status(MODELS)) in NO_KEY else status
    except httpx.TimeoutException as error:
        raise UserError(f"{url} does not answer within 10 s; wait until the server is ready, or look at it.") from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise UserError(f"No server answers at {url}; start it, or correct `attach.url` in the profile.") from error
    if status in NO_KEY:
        raise UserError(f"{server.base_url} answers {status}: {KEY_WANTED}.")
    if status != 200:
        raise UserError(f"{url} answers {status}; wait until it is ready, or correct `attach.url` in the profile.")
    progress(f"attached to {server.base_url}")
    yield server
