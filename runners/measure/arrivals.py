"""When the requests of an open loop arrive: a seeded Poisson process, and the rates that are tried.

Users who do not know of each other arrive like this: gaps are exponential, so now and then several come at once. All
configurations meet the same arrivals at one rate, so that a comparison is paired.
"""

import hashlib
import math
import random
from collections.abc import Iterable
from typing import Any

from runners.profiles.latency import OpenLoop


def seed_of(campaign: str, workload: str, rate: float, block: int) -> int:
    """The seed of one window. No configuration is in it: those of a block meet the same arrivals."""
    named = f"{campaign} {workload} {rate:.6g} {block}"
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big")


def arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """Times in [0, seconds) at which requests arrive, rising; `rate` per second on average. May be empty."""
    # Python's own generator: its stream for a seed is the same on every version and machine.
    rng = random.Random(seed)
    times: list[float] = []
    now = 0.0
    while True:
        now -= math.log(1.0 - rng.random()) / rate
        if now >= seconds:
            return times
        times.append(now)


def saturation(rows: Iterable[dict[str, Any]], workload: str) -> float | None:
    """The highest request rate of the closed loop: over the good rows of cells.jsonl of a workload; None without one.

    rows: of all configurations that are compared with each other, so that they are asked at the same rates.
    """
    closed = [
        row["output_tokens_per_second"] / row["output_tokens_per_request"]
        for row in rows
        if row["status"] == "ok"
        and row["workload"] == workload
        and row.get("load") != "open"
        and row.get("output_tokens_per_second")
        and row.get("output_tokens_per_request")
    ]
    return max(closed, default=None)


def rates(plan: OpenLoop, rows: Iterable[dict[str, Any]], workload: str) -> list[float]:
    """The request rates to try, rising; empty where they are shares of a saturation that nothing shows yet."""
    if plan.rates != "auto":
        return list(plan.rates)
    top = saturation(rows, workload)
    # Two digits: rates that a reader can say, and that a later campaign is likely to meet again.
    return sorted({float(f"{share * top:.2g}") for share in plan.shares}) if top else []
