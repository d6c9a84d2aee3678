"""The open loop: each request is sent at its intended time, whatever the server does.

A closed loop waits for the server: when it is slow, fewer requests are sent, and the ones that would have waited are
never seen (Tene calls this coordinated omission). Here latencies count from the intended time, so that waiting in the
client, in the connection or in the server's queue is all in them.

Arrivals go on before and after the window that is judged: those before it (RAMP) fill the server to the load of the
rate, those after it (TAIL) keep the load up while the last requests of the window are answered. Of those intended in
the window, the ones that end are TIMED, and the ones that do not within `drain_s` are CUT: they missed every limit.
"""

import asyncio
import itertools
from collections.abc import Sequence

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

TAIL = "tail"  # a request's role: intended after the window


def open_loop(
    base_url: str,
    jobs: Sequence[Job],
    times: Sequence[float],
    window: tuple[float, float],
    drain_s: float,
    timeout_s: float,
) -> Loop:
    """Send a job at each of `times` until all that are intended in `window` have ended, and at most `drain_s` longer.

    times: seconds from the start of the loop, rising. jobs are asked in turn, again if need be. timeout_s: as in
    client.closed_loop. A failed request of the window stays TIMED with its error, and the loop goes on.
    """
    return in_own_thread(lambda: _open_loop(base_url, jobs, times, window, drain_s, timeout_s))


async def _open_loop(
    base_url: str,
    jobs: Sequence[Job],
    times: Sequence[float],
    window: tuple[float, float],
    drain_s: float,
    timeout_s: float,
) -> Loop:
    end = window[1]
    endless = itertools.cycle(jobs)
    kept: list[tuple[Result, list[Stamped]]] = []
    running: list[asyncio.Task[None]] = []
    async with connection(base_url, timeout_s) as client:
        clock, cpu = Clock(), cpu_seconds()

        async def ask(job: Job, at: float) -> None:
            result, stamped = Result(job.prompt_id, intended_s=at, sent_s=clock.now(), role=CUT), list[Stamped]()
            kept.append((result, stamped))
            await stream(client, job.body, result, clock, stamped)
            result.role = role_of(at, window)  # a task that is cancelled before leaves it CUT

        async def send(part: Sequence[float]) -> None:
            for at in part:
                # Never early; late only where this process does not get its turn. Nothing here waits for the server.
                await asyncio.sleep(max(0.0, at - clock.now()))
                running.append(asyncio.create_task(ask(next(endless), at)))

        await send([at for at in times if at < end])
        judged = list(running)
        tail = asyncio.create_task(send([at for at in times if at >= end]))
        await asyncio.sleep(max(0.0, end - clock.now()))
        if judged:
            await asyncio.wait(judged, timeout=max(0.0, end + drain_s - clock.now()))
        seconds, cpu = clock.now(), cpu_seconds() - cpu
        for task in (tail, *running):
            task.cancel()
        await asyncio.gather(tail, *running, return_exceptions=True)
    results = parsed(kept)
    for result in results:
        if result.role == CUT and (role := role_of(result.intended_s, window)) != TIMED:
            result.role = role
    return Loop(results, seconds, cpu, window)


def role_of(intended_s: float, window: tuple[float, float]) -> str:
    """What a request that was intended then is for."""
    begin, end = window
    return RAMP if intended_s < begin else TIMED if intended_s < end else TAIL
