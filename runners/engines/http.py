"""One request to an engine, for what an engine's module asks by itself (token ids)."""

from typing import Any

import httpx

from runners.core.errors import UserError


async def post(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The JSON answer; UserError, with the server's first words, for any status but 200."""
    response = await client.post(path, json=body)
    if response.status_code != 200:
        raise UserError(f"The server answered {response.status_code} at {path}: {response.text[:200]}")
    answer: dict[str, Any] = response.json()
    return answer
