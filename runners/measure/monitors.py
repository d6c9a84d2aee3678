"""What is watched while a cell runs: other work on the machine, and how many requests the server runs at once."""

import threading
import time
from collections.abc import Callable
from typing import Any

import psutil


class NeighbourMonitor:
    """What others used of the machine between `start` and `stop`: other processes, and a virtual machine's host.

    own_seconds: CPU seconds so far of the server's processes and of this one. What the machine was busy with beyond
    them is other work. Two looks, no thread: watching costs the cell nothing.
    """

    def __init__(self, own_seconds: Callable[[], float]):
        self._own_seconds = own_seconds

    def start(self) -> None:
        self._began, self._times, self._own = time.perf_counter(), psutil.cpu_times(), self._own_seconds()

    def stop(self) -> tuple[float, float]:
        """(cores used by other processes, steal: the share of all cores' time that the host gave to others)."""
        now, times = time.perf_counter(), psutil.cpu_times()
        seconds = max(now - self._began, 1e-9)
        busy = busy_seconds(times) - busy_seconds(self._times)
        # Never below 0: the looks at the machine and at the processes are some milliseconds apart.
        neighbour_cores = max(0.0, (busy - (self._own_seconds() - self._own)) / seconds)
        stolen = getattr(times, "steal", 0.0) - getattr(self._times, "steal", 0.0)
        return neighbour_cores, max(0.0, stolen / (seconds * (psutil.cpu_count() or 1)))


def busy_seconds(times: Any) -> float:
    """CPU seconds of work in psutil.cpu_times(), all cores together; idle, waiting and stolen time are not work."""
    names = ("user", "nice", "system", "irq", "softirq")
    return sum(float(getattr(times, name, 0.0)) for name in names)


class PeakRunning(threading.Thread):
    """Polls the server's gauge of running requests while a cell runs and keeps the largest value.

    read: the gauge now, or None when the server does not answer. every_s: seconds between two polls; each poll costs
    the server and this process some CPU, so it is not made shorter than a cell needs.
    """

    def __init__(self, read: Callable[[], float | None], every_s: float = 0.5):
        super().__init__(daemon=True)  # it must not keep an interrupted program alive
        self._read, self._every, self._end = read, every_s, threading.Event()
        self.peak: float | None = None

    def run(self) -> None:
        # The first poll comes after a pause: the first requests are still on their way.
        while not self._end.wait(self._every):
            value = self._read()
            if value is not None:
                self.peak = value if self.peak is None else max(self.peak, value)

    def stop(self) -> float | None:
        """The largest value seen; None when no poll was answered."""
        self._end.set()
        self.join(timeout=10)
        return self.peak
