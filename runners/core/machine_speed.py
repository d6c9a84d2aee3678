"""How fast this machine works just now with all its cores at once, noted before each start of a server.

A virtual machine shares its host with others that none of its counters shows: no steal, no neighbour's process, and a
step of a model takes half as long again. Matrix products over all cores follow a part of that, and no other probe more
(the book's log). Ratios of cells measured at different speeds are given intervals wide enough to hold the difference
(drift).
"""

import functools
import time

import numpy as np

SIZE = 384  # a product of some tenths of a millisecond, like a layer of a small model
PRODUCTS = 1000
REST_SECONDS = 0.05  # the library's threads spin for a while after their last product


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


@functools.cache
def _matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, out = (np.full((SIZE, SIZE), 0.5, np.float32) for _ in range(3))
    np.dot(a, b, out=out)  # the library starts its threads
    return a, b, out
