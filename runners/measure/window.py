"""The closed loop in its steady state: a window in which C requests are in flight all the time.

A burst of C equal requests is another load than a server has: they are read together, decode in step and end together,
and most of the burst is ramp. So the first C answers have lengths spread evenly from short to full (the ages that
requests in flight have in a steady state) and each is followed at once by a full one. The window opens when all of the
first have their first token and one has ended, and it closes with the last token of the `answers`-th full answer. What
is in flight then is cut: its tokens inside the window count, its times do not.
"""

import asyncio
import itertools
from collections.abc import Sequence

from runners.measure.client import (
    CUT,
    RAMP,
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
    timeout_s: float,
    slot_field: str | None = None,
) -> Loop:
    """Keep len(ramp) requests in flight until `answers` of `jobs` are answered; jobs are asked in turn, then again.

    slot_field and timeout_s: as in client.closed_loop. A request that fails ends the loop: the cell is void then.
    Loop.window is None when it never opened.
    """
    return in_own_thread(lambda: _closed_window(base_url, ramp, jobs, answers, timeout_s, slot_field))


async def _closed_window(
    base_url: str, ramp: Sequence[Job], jobs: Sequence[Job], answers: int, timeout_s: float, slot_field: str | None
) -> Loop:
    endless = itertools.cycle(jobs)
    kept: list[tuple[Result, list[Stamped]]] = []
    full: list[Result] = []  # answered in full
    enough = asyncio.Event()
    async with connection(base_url, timeout_s) as client:
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
            free = 0.0
            await ask(first, number, free, RAMP)
            while not enough.is_set():
                free = clock.now()
                result = await ask(next(endless), number, free, "timed")
                full.append(result)
                if len(full) >= answers:
                    enough.set()

        workers = [asyncio.create_task(worker(n, job)) for n, job in enumerate(ramp)]
        await enough.wait()
        seconds, cpu = clock.now(), cpu_seconds() - cpu
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    results = parsed(kept)
    return Loop(results, seconds, cpu, _window(results, full[:answers]))


def _window(results: Sequence[Result], full: Sequence[Result]) -> tuple[float, float] | None:
    """(begin, end) of the steady state; None when it was never reached."""
    first = [r for r in results if r.role == RAMP or r.intended_s == 0.0]
    if any(r.first_token_s is None for r in first) or not any(r.last_token_s for r in full):
        return None
    ended = [r.last_token_s for r in first if r.role == RAMP and r.last_token_s is not None]
    begin = max([r.first_token_s for r in first if r.first_token_s is not None] + ([min(ended)] if ended else []))
    end = max(r.last_token_s for r in full if r.last_token_s is not None)
    return (begin, end) if end > begin else None
