"""How long a word takes from one core to another and back: nanoseconds, one number. Standard library only.

Two processes on two cores hand a byte to each other by spinning on shared memory, as an engine's threads do at every
layer. Most of it is Python's own loop, the same every time; what moves is where the host has put the two cores.
"""

import mmap
import os
import statistics
import time

BATCHES, ROUNDS = 15, 1500
SPINS = 20_000_000  # then the other one is gone


def echo(shared: mmap.mmap) -> None:
    for i in range(BATCHES * ROUNDS):
        want = i % 255 + 1
        for _ in range(SPINS):
            if shared[0] == want:
                break
        shared[128] = want


def ask(shared: mmap.mmap) -> float:
    """Nanoseconds of a round trip: the median over batches, so that a core that was away for one counts for nothing."""
    took, i = [], 0
    for _ in range(BATCHES):
        begin = time.perf_counter_ns()
        for _ in range(ROUNDS):
            want = i % 255 + 1
            i += 1
            shared[0] = want
            for _ in range(SPINS):
                if shared[128] == want:
                    break
        took.append((time.perf_counter_ns() - begin) / ROUNDS)
    return statistics.median(took)


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return
    shared = mmap.mmap(-1, 4096)
    child = os.fork()
    if child == 0:
        try:
            os.sched_setaffinity(0, {cores[-1]})
            echo(shared)
        finally:
            os._exit(0)
    os.sched_setaffinity(0, {cores[0]})
    found = ask(shared)
    os.waitpid(child, 0)
    print(round(found, 1))


if __name__ == "__main__":
    main()
