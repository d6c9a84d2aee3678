"""Small requests to a running server: an answer of bounded size in bounded time, whatever the server sends."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from runners.core import json_text
from runners.core.errors import UserError
from runners.core.one_line import one_line

LARGEST = 64_000_000  # bytes of an answer; a /metrics text of a large server has some hundred thousand
LONGEST_S = 30.0  # of a whole answer, beside httpx's own limit for each piece of it


@dataclass(frozen=True)
class Reply:
    """A whole answer. `json` raises ValueError where the content is none."""

    status: int
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        return json_text.loads(self.content)


def get(client: httpx.Client, url: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Ask for a small text. Raises httpx.HTTPError as httpx does, and for an answer that is too long or has no end."""
    until, content = time.monotonic() + LONGEST_S, bytearray()
    with client.stream("GET", url, headers=headers) as response:
        for piece in response.iter_bytes():
            content += piece
            if len(content) > LARGEST:
                raise httpx.ReadError(f"its answer is longer than {LARGEST:,} bytes")
            if time.monotonic() > until:
                raise httpx.ReadTimeout(f"its answer does not end within {LONGEST_S:.0f} s")
        return Reply(response.status_code, bytes(content))


async def post(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The JSON answer; UserError, with the server's first words, for any status but 200 and for what is no object."""
    response = await client.post(path, json=body)
    if response.status_code != 200:
        raise UserError(f"The server answered {response.status_code} at {path}: {one_line(response.text, 200)}")
    try:
        answer = json_text.loads(response.content)
    except ValueError as error:
        raise UserError(f"The server's answer at {path} is not JSON ({error}); look at its log.") from error
    if not isinstance(answer, dict):
        raise UserError(f"The server's answer at {path} must be a JSON object; look at its log.")
    return answer
