"""How fast this machine works just now with all its cores at once, recorded before each start of a server.

A virtual machine shares its host with others that none of its counters shows: no steal, no neighbour's process, and
still a step of a model takes half as long again. The speed of matrix products over all cores follows a part of that;
no other probe followed more (the book's log). It is shown beside the cells; ratios are made within blocks.
"""

import functools
import time

import numpy as np
import numpy.typing as npt

_Matrix = npt.NDArray[np.float32]
SIZE = 384  # a product of some tenths of a millisecond, like a layer of a small model
PRODUCTS = 1000
LONGEST_SECONDS = 3.0  # on a machine whose cores are taken a product may wait for its other half for a whole time slice
REST_SECONDS = 0.05  # the library's threads spin for a while after their last product


def gflops() -> float:
    """Billions of float32 operations a second in matrix products on every core, delays included.

    Over PRODUCTS of them, or as many as LONGEST_SECONDS allow.

    Takes half a second on two cores.
    """
    a, b, out = _matrices()
    begin, done, seconds = time.perf_counter(), 0, 0.0
    while done < PRODUCTS and seconds < LONGEST_SECONDS:
        np.dot(a, b, out=out)
        done += 1
        seconds = time.perf_counter() - begin
    time.sleep(REST_SECONDS)
    return 2 * SIZE**3 * done / seconds / 1e9


@functools.cache
def _matrices() -> tuple[_Matrix, _Matrix, _Matrix]:
    """Two factors and room for the product, SIZE x SIZE each."""
    a, b, out = (np.full((SIZE, SIZE), 0.5, np.float32) for _ in range(3))
    np.dot(a, b, out=out)  # the library starts its threads
    return a, b, out
