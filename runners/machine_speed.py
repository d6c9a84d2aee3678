"""How fast this machine's memory is just now, probed beside each cell while the server rests.

A virtual machine shares memory with others that none of its counters shows: no steal, no neighbour's process, and each
step of a model takes half as long again. A copy too large for any cache tells. Ratios of cells that were measured at
different speeds are given intervals wide enough to hold the difference (statistics.machine_drift).
"""

import functools
import time

import numpy as np

BLOCK = 64 * 2**20  # bytes
COPIES = 5


def memory_gb_per_s() -> float:
    """Gigabytes read and written a second by one thread: the median of COPIES copies, some tenth of a second in all."""
    source, target = _blocks()
    seconds = []
    for _ in range(COPIES):
        begin = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - begin)
    return 2 * BLOCK / float(np.median(seconds)) / 1e9


@functools.cache
def _blocks() -> tuple[np.ndarray, np.ndarray]:
    # Written to, so that the pages are there before anything is timed.
    return np.ones(BLOCK // 8), np.ones(BLOCK // 8)
