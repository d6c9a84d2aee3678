"""The closed loop in its steady state: a window in which C requests are in flight all the time.

A burst of C equal requests is another load than a server has: they are read together, decode in step and end together,
and most of the burst is ramp. So the first C answers have lengths spread evenly from short to full (the ages that
requests in flight have in a steady state) and each is followed at once by a full one. The window opens when all of the
first have their first token and one has ended. It closes with the last token of the `answers`-th full answer, or with
the first token that comes after `longest_s`: the state is steady from the start, so that no wave must be waited for.
What is in flight then is cut: its tokens inside the window count.

A step hands out the tokens of all requests at once. Both ends of the window lie behind such a burst: a window that
began in the middle of one would count tokens of a step that it did not see.
"""

import asyncio
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from runners.measure.client import (
    CUT,
    RAMP,
    TIMED,
    Clock,
    Job,
    Loop,
    Result,
    connection,
    cpu_seconds,
    in_own_thread,
    parsed,
    stream,
)
from runners.measure.token_times import Stamped

LINGER_S = 0.05  # after the end: the rest of the last burst is still on its way
LOOK_S = 0.05  # how often it is looked whether the window has opened, and whether a token has come after its end
SHORTEST = 8  # tokens of the shortest answer of the ramp: enough to warm the caches of a server that stood still


def ramp_lengths(concurrency: int, output_tokens: int) -> list[int]:
    """Tokens of the first C answers: spread evenly up to a full answer, none shorter than SHORTEST."""
    shortest = min(SHORTEST, output_tokens)
    return [max(shortest, output_tokens * i // concurrency) for i in range(concurrency)]


def closed_window(
    base_url: str,
    ramp: Sequence[Job],
    jobs: Sequence[Job],
    answers: int,
    longest_s: float,
    timeout_s: float,
    slot_field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Loop:
    """Keep len(ramp) requests in flight until `answers` of `jobs` are answered or the window is `longest_s` seconds
    long; jobs are asked in turn, then again.

    slot_field, timeout_s, headers: as in client.closed_loop. A request that fails ends the loop: the cell is void then.
    Loop.window is None when it never opened.
    """
    return in_own_thread(
        lambda: _closed_window(base_url, ramp, jobs, answers, longest_s, timeout_s, slot_field, headers)
    )


async def _closed_window(
    base_url: str,
    ramp: Sequence[Job],
    jobs: Sequence[Job],
    answers: int,
    longest_s: float,
    timeout_s: float,
    slot_field: str | None,
    headers: Mapping[str, str] | None,
) -> Loop:
    endless = itertools.cycle(jobs)
    kept: list[tuple[Result, list[Stamped]]] = []
    full: list[Result] = []  # answered in full
    enough = asyncio.Event()
    async with connection(base_url, timeout_s, headers) as client:
        clock, cpu = Clock(), cpu_seconds()

        async def ask(job: Job, number: int, free: float, role: str) -> Result:
            result = Result(job.prompt_id, intended_s=free, sent_s=clock.now(), role=CUT)
            stamped: list[Stamped] = []
            kept.append((result, stamped))
            await stream(client, job.body | ({slot_field: number} if slot_field else {}), result, clock, stamped)
            result.role = role  # a task that is cancelled before leaves it CUT
            if result.error is not None:
                enough.set()
            return result

        async def worker(number: int, first: Job) -> None:
            await ask(first, number, 0.0, RAMP)
            while not enough.is_set():
                full.append(await ask(next(endless), number, clock.now(), TIMED))
                if len(full) >= answers:
                    enough.set()

        async def time_out() -> None:
            while not _open([r for r, _ in kept[: len(ramp)]], len(ramp)):
                await asyncio.sleep(LOOK_S)
            await asyncio.sleep(longest_s)
            # A server that reads a prompt for seconds and sends nothing meanwhile must not have that time left out.
            end = clock.now()
            while not any((r.last_token_s or 0.0) > end for r, _ in kept):
                await asyncio.sleep(LOOK_S)
            enough.set()

        tasks = [asyncio.create_task(worker(n, job)) for n, job in enumerate(ramp)]
        tasks.append(asyncio.create_task(time_out()))
        try:
            await _until(enough, tasks)
            await asyncio.sleep(LINGER_S)
            seconds, cpu = clock.now(), cpu_seconds() - cpu
        finally:  # on Ctrl-C too
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    results = parsed(kept)
    return Loop(results, seconds, cpu, _window(results[: len(ramp)], results, full[:answers], answers))


async def _until(enough: asyncio.Event, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for the event; a task that fails before raises its error here instead of leaving the loop waiting."""
    waiting = asyncio.create_task(enough.wait())
    try:
        while not enough.is_set():
            done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        waiting.cancel()


def _open(first: Sequence[Result], concurrency: int) -> bool:
    """Has the window opened? When all of the ramp have a first token and one of them has ended."""
    begun = [r for r in first if r.first_token_s is not None]
    return len(begun) == concurrency and any(r.role == RAMP for r in first)


def _window(
    first: Sequence[Result], results: Sequence[Result], full: Sequence[Result], answers: int
) -> tuple[float, float] | None:
    """(begin, end) of the steady state; None when it was never reached. first: the requests of the ramp."""
    began = [r.first_token_s for r in first if r.first_token_s is not None]
    ended = [r.last_token_s for r in first if r.role == RAMP and r.last_token_s is not None]
    if len(began) < len(first) or not ended:
        return None
    stamps = np.sort(np.concatenate([r.token_s for r in results]))
    gaps = np.concatenate([np.diff(r.token_s) for r in results])
    step = float(np.median(gaps)) if len(gaps) else 0.0
    begin = burst_end(stamps, max(*began, min(ended)), step)
    if len(full) >= answers:
        end = burst_end(stamps, max(r.last_token_s for r in full if r.last_token_s is not None), step)
    else:
        end = float(stamps[-1])
    return (begin, end) if end > begin else None


def burst_end(stamps: npt.NDArray[np.float64], at: float, step: float) -> float:
    """The last token of the burst that holds the time `at`. stamps: of all tokens, rising; step: of one stream,
    seconds. Tokens belong to one burst where less than a quarter of a step lies between them; it is no longer than one.
    """
    later = stamps[(stamps > at) & (stamps <= at + step)]
    for stamp in later:
        if stamp - at >= step / 4:
            break
        at = float(stamp)
    return at
