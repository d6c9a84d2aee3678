"""How fast this machine works just now with all its cores at once, probed before each start of a server.

A virtual machine shares its host with others that none of its counters shows: no steal, no neighbour's process, and a
step of a model takes half as long again, because the cores wait for each other at every layer and one of them was away.
One core alone, and a copy in memory, are as fast as ever then; matrix products over all cores are not. Ratios of cells
measured at different speeds are given intervals wide enough to hold the difference (drift).
"""

import functools
import os
import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

SIZE = 384  # a product of some tenths of a millisecond, like a layer of a small model
PRODUCTS = 1000
TURNS = 2_000_000
LOOP_CORES = 4  # at most: of a large box a few tell
REST_SECONDS = 0.05  # the library's threads spin for a while after their last product
SLOW = 0.85  # of the fastest of the starts before: the machine is away, not merely uneven
LOOK_BACK = 3  # starts; a machine that stays slow is soon taken as it is
PAUSE_SECONDS = 10


def gflops() -> float:
    """Billions of operations a second of float32 matrix products on every core: the mean of PRODUCTS, delays included.

    Half a second on two cores.
    """
    a, b, out = _matrices()
    begin = time.perf_counter()
    for _ in range(PRODUCTS):
        np.dot(a, b, out=out)
    seconds = time.perf_counter() - begin
    time.sleep(REST_SECONDS)
    return 2 * SIZE**3 * PRODUCTS / seconds / 1e9


def loops() -> float:
    """Millions of turns a second of a plain Python loop, on each core in turn: the mean. A quarter of a second on two.

    Code that branches and waits, as most of an engine's does: where a core is shared with another guest's thread this
    slows, while matrix products, which keep one unit busy, hardly do.
    """
    cores, rates = os.sched_getaffinity(0), []
    try:
        for core in sorted(cores)[:LOOP_CORES]:
            os.sched_setaffinity(0, {core})
            begin, total = time.perf_counter(), 0
            for i in range(TURNS):
                total += i
            rates.append(TURNS / (time.perf_counter() - begin) / 1e6)
    finally:
        os.sched_setaffinity(0, cores)
    return sum(rates) / len(rates)


def settled(earlier: Sequence[float], patience_s: float, say: Callable[[str], None]) -> float:
    """`gflops`, after waiting up to `patience_s` while it is below SLOW of the fastest of the last starts' (`earlier`,
    oldest first). Slow or not, the last look is what is given back.
    """
    wanted = SLOW * max(earlier[-LOOK_BACK:], default=0.0)
    end, speed, told = time.monotonic() + patience_s, gflops(), False
    while speed < wanted and time.monotonic() < end:
        if not told:
            say(
                f"the machine works at {speed:.0f} GFLOP/s, below {wanted:.0f}; waiting up to {patience_s:.0f} s for it"
            )
            told = True
        time.sleep(PAUSE_SECONDS)
        speed = gflops()
    return speed


def drift(own: pd.DataFrame, base: pd.DataFrame) -> float:
    """The machine's own speed during one set of cells over that during another, by `gflops` before each
    start; 1 where either was not probed.

    Taken in full: a step that is all products of all cores slows by as much, another by less.
    """
    if not all("machine_gflops" in side for side in (own, base)):
        return 1.0
    sides = [np.log(side["machine_gflops"].astype(float)).mean() for side in (own, base)]
    return float(np.exp(sides[0] - sides[1])) if np.isfinite(sides).all() else 1.0


@functools.cache
def _matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, out = (np.full((SIZE, SIZE), 0.5, np.float32) for _ in range(3))
    np.dot(a, b, out=out)  # the library starts its threads
    return a, b, out
