"""The streaming client: requests with the time of each token.

It runs on the machine that it measures, so it must cost little: httpx with the aiohttp transport takes a third of plain
httpx's CPU a token, and inside the timed region raw bytes are only kept with their time. JSON is parsed until the first
token of a request, and the rest after the cell (token_times.py). Every request opens a fresh connection: llama.cpp's
server closes idle ones, and a reused one fails as if the server had.
"""

import asyncio
import math
import resource
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from runners.core import redact, secrets
from runners.core.one_line import one_line
from runners.measure import token_times
from runners.measure.chat_event import OddReply, text_of
from runners.measure.event_stream import DONE, EventStream, ends
from runners.measure.request_limits import Limits
from runners.measure.token_times import Stamped
from runners.serve.attached_server import KEY_WANTED, NO_KEY

RAMP, TIMED, CUT = "ramp", "timed", "cut"
OWN_ENDS = ("stop", "tool_calls", "function_call")  # finish reasons of an answer that ended by itself
PATH = "/v1/chat/completions"
HEARD = 4096  # bytes that are read of what a server says when it refuses
AFTER_END_S = 1.0  # how long a connection may stay open behind the end of its stream
_USUAL_HEADERS = ("accept", "accept-encoding", "connection", "user-agent")


@dataclass
class Result:
    """One request. Times are seconds from the start of the cell; None where it never came to that."""

    prompt_id: str
    intended_s: float  # when its worker became free, or its arrival; `sent_s` is later only by the client's own delay
    sent_s: float
    first_token_s: float | None = None
    last_token_s: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    count_source: str | None = None  # "usage": the engine's own count
    finish_reason: str | None = None
    error: str | None = None
    text: str = ""
    role: str = TIMED  # RAMP: keeps the place before the window; CUT: still running when the window closed
    token_s: list[float] = field(default_factory=list)  # arrival of each chunk
    token_counts: list[int] = field(default_factory=list)  # tokens in each chunk


@dataclass
class Loop:
    """A finished loop of requests: its results in the order they were sent, its window and its own cost."""

    results: list[Result]
    seconds: float  # from the first request sent to the end
    client_cpu_s: float  # CPU time of this process over those seconds
    window: tuple[float, float] | None = None  # begin and end of what is counted; None: all of it


@dataclass(frozen=True)
class Job:
    """A request to send: the prompt that it asks, and its JSON body (`body`)."""

    prompt_id: str
    body: dict[str, Any]


class Clock:
    """Seconds since the loop began; what a request's stamps are taken from."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def now(self) -> float:
        return time.perf_counter() - self._began


def closed_loop(
    base_url: str,
    jobs: list[Job],
    concurrency: int,
    timeout_s: float,
    slot_field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Loop:
    """Send every job, `concurrency` at a time, a next one as soon as one ends.

    slot_field: the name of a request field that holds the sending worker's number (0, 1, ... concurrency - 1), so that
    an engine with slots serves each worker from one slot; None to leave it out. headers: of each request, beside the
    usual ones.

    A request that brings no byte, or no first token, for `timeout_s` seconds ends as an error, as does one that goes on
    for ever (request_limits.py), and any other failure: the caller's gates decide what that means for the cell. Never
    raises for a request's sake.
    """
    return in_own_thread(lambda: _closed_loop(base_url, jobs, concurrency, timeout_s, slot_field, headers))


def in_own_thread(work: Callable[[], Coroutine[Any, Any, Loop]]) -> Loop:
    """Run a loop of requests to its end in a thread of its own: a notebook's kernel runs an event loop in this one."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(work())
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
    base_url: str,
    jobs: list[Job],
    concurrency: int,
    timeout_s: float,
    slot_field: str | None,
    headers: Mapping[str, str] | None,
) -> Loop:
    waiting = iter(list(jobs))
    kept: list[tuple[Result, list[Stamped]]] = []
    async with connection(base_url, timeout_s, headers) as client:
        clock, cpu = Clock(), cpu_seconds()

        async def worker(number: int) -> None:
            free = 0.0  # when this worker became free: the intended time of its next request
            for job in waiting:  # one iterator for all workers: each takes the next job
                result = Result(job.prompt_id, intended_s=free, sent_s=clock.now())
                stamped: list[Stamped] = []
                kept.append((result, stamped))
                await stream(client, job.body | ({slot_field: number} if slot_field else {}), result, clock, stamped)
                free = clock.now()

        await asyncio.gather(*(worker(n) for n in range(min(concurrency, len(jobs)))))
        seconds, cpu = clock.now(), cpu_seconds() - cpu
    return Loop(parsed(kept), seconds, cpu)


@asynccontextmanager
async def connection(
    base_url: str, timeout_s: float, headers: Mapping[str, str] | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client for many requests at once, without a cap of its own on connections, which would hold requests back."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
    timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, 10))
    transport = AiohttpTransport(client=session)
    # httpx offers to take compressed answers; tokens that are compressed together arrive together.
    own = {"Accept-Encoding": "identity"} | dict(headers or {})
    async with httpx.AsyncClient(transport=transport, base_url=base_url, timeout=timeout, headers=own) as client:
        yield client


async def stream(
    client: httpx.AsyncClient, request: dict[str, Any], result: Result, clock: Clock, stamped: list[Stamped]
) -> None:
    """Send one request; keep the answer's bytes with their times and stamp its first token. This is the hot loop.

    Failures end in `result.error`. A task that is cancelled leaves what came so far.
    """
    limits = Limits.of(request, client.timeout.read or math.inf)
    events, room, ended = EventStream(), limits.most_bytes, False
    try:
        # httpx waits so long for a byte; a server may send bytes for ever and no token.
        async with asyncio.timeout(limits.patience_s) as limit, client.stream("POST", PATH, json=request) as response:
            if error := await _not_a_stream(response, client.headers):
                result.error = error
                return
            async for chunk in response.aiter_raw():
                now = clock.now()
                stamped.append((now, chunk))
                room -= len(chunk)
                if room < 0:
                    result.error = f"the server's answer is longer than {limits.most_bytes:,} bytes"
                    return
                if result.first_token_s is None:
                    # Parsed until the first token only: the first events of a stream carry a role and no text.
                    if any(text_of(event) for event in events.feed(chunk)):
                        result.first_token_s = result.last_token_s = now
                        limit.reschedule(limits.until())
                elif b'content"' in chunk or b'reasoning"' in chunk or b'"arguments"' in chunk:
                    # Thoughts and a tool's call too; a search of bytes costs far less than JSON. The closing chunks
                    # (finish reason, usage) carry no token and must not move the last one.
                    result.last_token_s = now
                if DONE in chunk and ends(chunk):
                    # All is said; a server or a gateway that keeps the connection open need not be waited for.
                    ended = True
                    limit.reschedule(asyncio.get_running_loop().time() + AFTER_END_S)
    except OddReply as odd:
        result.error = str(odd)
    except TimeoutError:
        result.error = None if ended else limits.exceeded(result.first_token_s is not None, bool(stamped))
    except httpx.TimeoutException as error:
        # The transport calls any broken connection a time-out.
        cause = error.__cause__
        broken = isinstance(cause, aiohttp.ClientError) and not isinstance(cause, TimeoutError)
        why = one_line(f"{type(cause).__name__}: {cause}") if broken else f"no byte for {limits.patience_s:.0f} s"
        result.error = None if ended else why
    except (httpx.HTTPError, aiohttp.ClientError, OSError) as error:
        result.error = one_line(f"{type(error).__name__}: {error}")


async def _not_a_stream(response: httpx.Response, headers: Mapping[str, str]) -> str | None:
    """Why an answer is no stream of events that can be timed; None for a good one."""
    if response.status_code != 200:
        said = b""
        async for chunk in response.aiter_raw():  # an error's text may be endless too
            said += chunk
            if len(said) >= HEARD:
                break
        return refused(response.status_code, said[:HEARD].decode(errors="replace"), headers)
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        # Tokens that are compressed together arrive together.
        return f"the server compressed its answer ({one_line(coding)}) although `Accept-Encoding: identity` was sent"
    return None


def refused(status: int, text: str, headers: Mapping[str, str]) -> str:
    """The error of a request that was refused: what the server says, without our own headers' values, which it may
    repeat; cut after those are out, since half a secret would not be known.
    """
    for name, value in headers.items():
        if name.lower() not in _USUAL_HEADERS:
            text = redact.without_words(text, value.split())
    wanted = f" ({KEY_WANTED})" if status in NO_KEY else ""
    return f"HTTP {status}{wanted}: {one_line(secrets.masked(text))}"


def parsed(kept: list[tuple[Result, list[Stamped]]]) -> list[Result]:
    """The results with text, counts and token times, once the clock and the CPU time have stopped."""
    answers = [token_times.read(stamped) for _, stamped in kept]
    token_times.fill_in_cut(answers)
    for (result, _), answer in zip(kept, answers, strict=True):
        _fill(result, answer)
    return [result for result, _ in kept]


def _fill(result: Result, answer: token_times.Answer) -> None:
    result.text, result.token_s, result.token_counts = answer.text, answer.token_s, answer.token_counts
    result.finish_reason, result.prompt_tokens = answer.finish_reason, answer.prompt_tokens
    result.error = answer.error or result.error
    if answer.token_s:
        result.first_token_s, result.last_token_s = answer.token_s[0], answer.token_s[-1]
    if result.role == CUT:
        result.output_tokens = sum(answer.token_counts)  # what came until then
    elif answer.output_tokens is not None:
        result.output_tokens, result.count_source = answer.output_tokens, "usage"
    if result.error is None and not answer.done and result.role != CUT:
        result.error = "the stream ended early"


def body(
    model: str,
    messages: list[dict[str, Any]],
    output_tokens: int,
    temperature: float,
    extra: dict[str, Any],
    ends: str = "fixed",
) -> dict[str, Any]:
    """A streaming chat request of exactly `output_tokens` tokens that ends with the engine's token counts (`usage`).

    extra: fields that an engine needs beside the usual ones. ends: "natural" lets the answer end by itself before.
    """
    # All configurations answer with equally many tokens, or their times would not compare.
    whole: dict[str, Any] = {} if ends == "natural" else {"ignore_eos": True}
    return {
        "model": model,
        "messages": messages,
        "max_tokens": output_tokens,
        "temperature": temperature,
        **whole,
        "stream": True,
        "stream_options": {"include_usage": True},
    } | extra


def cpu_seconds() -> float:
    """CPU time of this process so far."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime
