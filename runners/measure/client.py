"""The streaming client: a closed loop that keeps C requests in flight, with four time stamps a request.

httpx with the aiohttp transport, which costs a third of plain httpx's CPU a token. Inside the timed
region raw bytes are kept and counted; JSON is read only until the first token of a request, and the
rest after the cell. Every request opens a fresh connection: llama.cpp's server closes idle ones, and
a reused one fails as if the server had.
"""

import asyncio
import json
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport


@dataclass
class Result:
    """One request. Times are seconds from the start of the cell; None where it never came to that."""

    prompt_id: str
    intended_s: float
    sent_s: float
    first_token_s: float | None = None
    last_token_s: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    count_source: str | None = None
    finish_reason: str | None = None
    error: str | None = None
    text: str = ""


@dataclass
class Loop:
    """A finished closed loop: its results in the order they were sent, its length and its own cost."""

    results: list[Result]
    seconds: float
    client_cpu_s: float


@dataclass(frozen=True)
class Job:
    prompt_id: str
    body: dict[str, Any]


def closed_loop(
    base_url: str, jobs: list[Job], concurrency: int, timeout_s: float, slot_field: str | None = None
) -> Loop:
    """Send every job, `concurrency` at a time, a next one as soon as one ends. With `slot_field` each request says
    under that name which of the `concurrency` places (0, 1, ...) it is sent from.

    A request that brings no byte for `timeout_s` ends as an error, as does any other failure: the
    caller's gates decide what that means for the cell. Never raises for a request's sake.
    """
    # In a thread of its own: a notebook's kernel already runs an event loop in this one.
    loop = asyncio.new_event_loop()
    task = loop.create_task(_closed_loop(base_url, jobs, concurrency, timeout_s, slot_field))
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(loop.run_until_complete, task)
        try:
            return future.result()
        except BaseException:  # Ctrl-C does not wait for the cell to end
            loop.call_soon_threadsafe(task.cancel)
            raise
        finally:
            thread.shutdown(wait=True)
            loop.close()


async def _closed_loop(
    base_url: str, jobs: list[Job], concurrency: int, timeout_s: float, slot_field: str | None
) -> Loop:
    waiting = iter(list(jobs))
    results: list[Result] = []
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
    timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, 10))
    transport = AiohttpTransport(client=session)
    async with httpx.AsyncClient(transport=transport, base_url=base_url, timeout=timeout) as client:
        began, cpu = time.perf_counter(), _cpu_seconds()

        async def worker(place: int) -> None:
            free = 0.0  # when this place in the loop became free: the intended time of its next request
            for job in waiting:
                result = Result(job.prompt_id, intended_s=free, sent_s=time.perf_counter() - began)
                results.append(result)
                request = job.body | ({slot_field: place} if slot_field else {})
                raw = await _stream(client, request, result, began)
                free = time.perf_counter() - began
                raws.append((result, raw))

        raws: list[tuple[Result, list[bytes]]] = []
        await asyncio.gather(*(worker(place) for place in range(min(concurrency, len(jobs)))))
        seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu
    for result, raw in raws:
        _read(result, b"".join(raw))
    return Loop(results, seconds, cpu)


async def _stream(client: httpx.AsyncClient, request: dict[str, Any], result: Result, began: float) -> list[bytes]:
    raw: list[bytes] = []
    head = b""
    try:
        async with client.stream("POST", "/v1/chat/completions", json=request) as response:
            if response.status_code != 200:
                body = (await response.aread())[:300].decode(errors="replace")
                result.error = f"HTTP {response.status_code}: {body}"
                return raw
            async for chunk in response.aiter_raw():
                now = time.perf_counter() - began
                raw.append(chunk)
                if result.first_token_s is None:
                    head += chunk
                    if not _has_token(head):
                        continue
                    result.first_token_s = result.last_token_s = now
                elif b'content":' in chunk:  # `reasoning_content` too
                    # The closing chunks (finish reason, usage) carry no token and must not move the last one.
                    result.last_token_s = now
    except httpx.TimeoutException:
        result.error = f"no byte for {client.timeout.read:.0f} s"
    except (httpx.HTTPError, aiohttp.ClientError, OSError) as error:
        result.error = f"{type(error).__name__}: {error}"
    return raw


def _has_token(head: bytes) -> bool:
    """True once the stream's whole events hold a token's text (role-only and empty deltas are none)."""
    return any(_delta(event) for event in _events(head.rpartition(b"\n\n")[0]))


def _events(raw: bytes):
    for line in raw.split(b"\n"):
        line = line.strip()
        if line.startswith(b"data:") and not line.endswith(b"[DONE]"):
            try:
                event = json.loads(line[5:])
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def _delta(event: dict) -> str:
    choices = event.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    return (delta.get("content") or "") + (delta.get("reasoning_content") or "")


def _read(result: Result, raw: bytes) -> None:
    """Text, token counts, finish reason and an error inside the stream, once the clock has stopped."""
    parts = []
    done = raw.rstrip().endswith(b"[DONE]")
    for event in _events(raw):
        if event.get("error"):
            detail = event["error"]
            result.error = str(detail.get("message", detail) if isinstance(detail, dict) else detail)[:300]
        parts.append(_delta(event))
        choices = event.get("choices") or []
        if choices and choices[0].get("finish_reason"):
            result.finish_reason = choices[0]["finish_reason"]
        if event.get("usage"):
            result.prompt_tokens = event["usage"].get("prompt_tokens")
            result.output_tokens = event["usage"].get("completion_tokens")
            result.count_source = "usage"
    result.text = "".join(parts)
    if result.error is None and not done:
        result.error = "the stream ended early"


def body(
    model: str, messages: list[dict], output_tokens: int, temperature: float, extra: dict[str, Any]
) -> dict[str, Any]:
    """A streaming chat request of fixed output length, usage asked for."""
    return {
        "model": model,
        "messages": messages,
        "max_tokens": output_tokens,
        "temperature": temperature,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    } | extra


def _cpu_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime
