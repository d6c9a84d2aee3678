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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runners.measure.arrivals import arrivals, rates, seed_of
from runners.measure.cell_context import CellContext
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
from runners.measure.estimate import Clock as Estimates
from runners.measure.token_times import Stamped
from runners.profiles.points import Point
from runners.profiles.profile import Profile

TAIL = "tail"  # a request's role: intended after the window
# A request that takes this many times the longest answer within the limits keeps none of the limits that are looked at.
PATIENCE = 3.0


@dataclass(frozen=True)
class Schedule:
    """When the requests of one point arrive; seconds from the start of its loop."""

    times: list[float]
    window: tuple[float, float]
    drain_s: float

    @property
    def judged(self) -> int:
        """How many requests are intended in the window."""
        begin, end = self.window
        return sum(begin <= at < end for at in self.times)


def schedule(profile: Profile, preset: str | None, rate: float, seconds: float, seed: int) -> Schedule:
    """The arrivals of one window of `seconds`, with those before it and after it; the same for every configuration."""
    limits = profile.workload.latency_limits
    assert limits is not None, "an open loop has latency limits (profiles/schema.py)"
    longest_s = (limits.ttft_ms + limits.tpot_ms * (profile.output_tokens(preset) - 1)) / 1000
    longest_s = max(longest_s, (limits.e2e_ms or 0.0) / 1000)
    # As many requests in flight as the rate leads to: that takes about as long as one answer.
    lead_s, drain_s = min(longest_s, seconds / 2), PATIENCE * longest_s
    times = arrivals(rate, lead_s + seconds + drain_s, seed)
    return Schedule(times, (lead_s, lead_s + seconds), drain_s)


def wanted(profile: Profile, preset: str | None, rows: Sequence[dict[str, Any]]) -> list[tuple[str, float]]:
    """(workload, rate) of each rate that a preset measures; empty where it asks for none.

    rows: of cells.jsonl, of all configurations that are compared with each other and of this campaign. Shares of a
    saturation need closed cells of the workload among them.
    """
    plan = profile.workload.open_loop
    if plan is None or (preset or profile.workload.default_preset) not in plan.presets:
        return []
    return [(workload, rate) for workload in profile.workload.prompt_sets for rate in rates(plan, rows, workload)]


def longest_seconds(profile: Profile, preset: str | None) -> float:
    """The longest that one configuration takes at one rate; about half of it where its answers keep the limits."""
    assert profile.workload.open_loop is not None, "only a profile with an open loop has rates"
    plan = schedule(profile, preset, 1.0, profile.workload.open_loop.seconds, seed=0)
    return plan.window[1] + plan.drain_s


def expected_seconds(profile: Profile, preset: str | None, configurations: Sequence[str], clock: Estimates) -> float:
    """About how long the open loops of these configurations take, their starts included; 0.0 for a preset without.

    Rates that are shares of a saturation are as many as the shares.
    """
    plan = profile.workload.open_loop
    if plan is None or (preset or profile.workload.default_preset) not in plan.presets:
        return 0.0
    shape = schedule(profile, preset, 1.0, plan.seconds, seed=0)
    # Where answers keep the limits, the last one of a window ends about one answer after it.
    window = shape.window[1] + shape.drain_s / PATIENCE
    count = len(plan.shares if plan.rates == "auto" else plan.rates)
    total = 0.0
    for name in configurations:
        if name not in plan.leave_out:
            sets = profile.configuration(name).prompt_sets or profile.workload.prompt_sets
            total += clock.start(name) + count * window * len(set(sets) & set(profile.workload.prompt_sets))
    return total


def point(
    profile: Profile, preset: str | None, workload: str, rate: float, *, campaign: str, start: int, repeat: int = 0
) -> Point:
    """The point of a rate. All configurations of a campaign are given the same arrivals in their `repeat`-th block."""
    assert profile.workload.open_loop is not None, "only a profile with an open loop has points of a rate"
    seconds = profile.workload.open_loop.seconds
    seed = seed_of(campaign, workload, rate, repeat)
    judged = schedule(profile, preset, rate, seconds, seed).judged
    # What its server is warmed up for: more requests than this at once are queued or new to it.
    concurrency = max(profile.workload.concurrencies)
    return Point(workload, concurrency, repeat, start, judged, rate=rate, seconds=seconds, seed=seed)


def measure_rate(context: CellContext, base_url: str, point: Point) -> Loop:
    """The open loop of a point with a rate."""
    assert point.rate is not None and point.seconds is not None
    plan = schedule(context.profile, context.preset, point.rate, point.seconds, point.seed)
    timeout_s = context.profile.request_timeout_seconds
    return open_loop(base_url, context.timed(point), plan.times, plan.window, plan.drain_s, timeout_s, context.headers)


def open_loop(
    base_url: str,
    jobs: Sequence[Job],
    times: Sequence[float],
    window: tuple[float, float],
    drain_s: float,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
) -> Loop:
    """Send a job at each of `times` until all that are intended in `window` have ended, and at most `drain_s` longer.

    times: seconds from the start of the loop, rising. jobs: asked in turn, again if need be. timeout_s, headers: as in
    client.closed_loop. A failed request of the window stays TIMED with its error, and the loop goes on.
    """
    return in_own_thread(lambda: _open_loop(base_url, jobs, times, window, drain_s, timeout_s, headers))


async def _open_loop(
    base_url: str,
    jobs: Sequence[Job],
    times: Sequence[float],
    window: tuple[float, float],
    drain_s: float,
    timeout_s: float,
    headers: Mapping[str, str] | None,
) -> Loop:
    end = window[1]
    endless = itertools.cycle(jobs)
    kept: list[tuple[Result, list[Stamped]]] = []
    running: list[asyncio.Task[None]] = []
    async with connection(base_url, timeout_s, headers) as client:
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
