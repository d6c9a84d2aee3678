"""The streaming client: a closed loop that keeps C requests in flight, with four time stamps a request.

It runs on the machine that it measures, so it must cost little: httpx with the aiohttp transport takes a third of plain
httpx's CPU a token, and inside the timed region raw bytes are only kept. JSON is parsed until the first token of a
request, and the rest after the cell. Every request opens a fresh connection: llama.cpp's server closes idle ones, and a
reused one fails as if the server had.
"""

import asyncio
import json
import resource
import time
from collections.abc import Iterator
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
    intended_s: float  # when its worker became free; `sent_s` is later only by the client's own delay
    sent_s: float
    first_token_s: float | None = None
    last_token_s: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    count_source: str | None = None  # "usage": the engine's own count
    finish_reason: str | None = None
    error: str | None = None
    text: str = ""


@dataclass
class Loop:
    """A finished closed loop: its results in the order they were sent, its length and its own cost."""

    results: list[Result]
    seconds: float  # from the first request sent to the last answer's end
    client_cpu_s: float  # CPU time of this process over those seconds


@dataclass(frozen=True)
class Job:
    """A request to send: the prompt that it asks, and its JSON body (`body`)."""

    prompt_id: str
    body: dict[str, Any]


def closed_loop(
    base_url: str, jobs: list[Job], concurrency: int, timeout_s: float, slot_field: str | None = None
) -> Loop:
    """Send every job, `concurrency` at a time, a next one as soon as one ends.

    slot_field: the name of a request field that holds the sending worker's number (0, 1, ... concurrency - 1), so that
    an engine with slots serves each worker from one slot; None to leave it out.

    A request that brings no byte for `timeout_s` seconds ends as an error, as does any other failure: the caller's
    gates decide what that means for the cell. Never raises for a request's sake.
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
    raws: list[tuple[Result, list[bytes]]] = []
    # limit=0: no cap of aiohttp's own on connections, which would hold requests back.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
    timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, 10))
    transport = AiohttpTransport(client=session)
    async with httpx.AsyncClient(transport=transport, base_url=base_url, timeout=timeout) as client:
        began, cpu = time.perf_counter(), _cpu_seconds()

        async def worker(number: int) -> None:
            free = 0.0  # when this worker became free: the intended time of its next request
            for job in waiting:  # one iterator for all workers: each takes the next job
                result = Result(job.prompt_id, intended_s=free, sent_s=time.perf_counter() - began)
                results.append(result)
                request = job.body | ({slot_field: number} if slot_field else {})
                raw = await _stream(client, request, result, began)
                free = time.perf_counter() - began
                raws.append((result, raw))

        await asyncio.gather(*(worker(n) for n in range(min(concurrency, len(jobs)))))
        seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu
    # The clock and the CPU time have stopped: parsing is not charged to the client.
    for result, raw in raws:
        _parse_answer(result, b"".join(raw))
    return Loop(results, seconds, cpu)


async def _stream(client: httpx.AsyncClient, request: dict[str, Any], result: Result, began: float) -> list[bytes]:
    """Send one request and stamp its first and last token; returns the answer's raw pieces. This is the hot loop."""
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
                    # Parsed until the first token only: the first events of a stream carry a role and no text.
                    head += chunk
                    if not _has_token(head):
                        continue
                    result.first_token_s = result.last_token_s = now
                elif b'content":' in chunk:  # `reasoning_content` too; a search of bytes costs far less than JSON
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


def _events(raw: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of a server-sent event stream; a line that is not JSON is passed over."""
    for line in raw.split(b"\n"):
        line = line.strip()
        if line.startswith(b"data:") and not line.endswith(b"[DONE]"):
            try:
                event = json.loads(line[5:])
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def _delta(event: dict[str, Any]) -> str:
    """The text of one event, a reasoning model's thoughts included: they are tokens like others."""
    choices = event.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    text: str = (delta.get("content") or "") + (delta.get("reasoning_content") or "")
    return text


def _parse_answer(result: Result, raw: bytes) -> None:
    """Fill in text, token counts, finish reason and an error inside the stream, once the clock has stopped."""
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
    model: str, messages: list[dict[str, Any]], output_tokens: int, temperature: float, extra: dict[str, Any]
) -> dict[str, Any]:
    """A streaming chat request of exactly `output_tokens` tokens that ends with the engine's token counts (`usage`).

    extra: fields that an engine needs beside the usual ones.
    """
    return {
        "model": model,
        "messages": messages,
        "max_tokens": output_tokens,
        "temperature": temperature,
        "ignore_eos": True,  # all configurations answer with equally many tokens, or their times would not compare
        "stream": True,
        "stream_options": {"include_usage": True},
    } | extra


def _cpu_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime
