"""What is watched while a cell runs: other work on the machine, and the server's running requests."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from runners.profiles.schema import Gates


@dataclass
class NeighbourMonitor:
    """Watches the machine while a cell runs: cores used by others, and steal."""

    own_seconds: Callable[[], float]  # CPU seconds so far of the server's processes and of this one
    neighbour_cores: float | None = None
    steal_share: float | None = None
    _before: tuple = field(default=(), repr=False)

    def start(self) -> None:
        self._before = (time.perf_counter(), psutil.cpu_times(), self.own_seconds())

    def stop(self) -> None:
        wall, times, own = self._before
        now, after = time.perf_counter(), psutil.cpu_times()
        busy = _busy(after) - _busy(times)
        passed = max(now - wall, 1e-9)
        self.neighbour_cores = max(0.0, (busy - (self.own_seconds() - own)) / passed)
        cores = psutil.cpu_count() or 1
        self.steal_share = max(0.0, (getattr(after, "steal", 0) - getattr(times, "steal", 0)) / (passed * cores))

    def reason(self, gates: Gates) -> str | None:
        if not gates.check_neighbours:
            return None
        if (self.neighbour_cores or 0) > gates.neighbour_cores_ceiling:
            return (
                f"the machine was not quiet: other work used {self.neighbour_cores:.2f} cores, "
                f"ceiling {gates.neighbour_cores_ceiling:.2f}"
            )
        if (self.steal_share or 0) > gates.steal_ceiling:
            return f"the machine was not quiet: steal {self.steal_share:.1%}, ceiling {gates.steal_ceiling:.0%}"
        return None


def _busy(t) -> float:
    return t.user + t.nice + t.system + getattr(t, "irq", 0) + getattr(t, "softirq", 0)


class PeakRunning(threading.Thread):
    """Polls the server's running-requests gauge while a cell runs and keeps the largest value."""

    def __init__(self, read: Callable[[], float | None], every_s: float = 0.5):
        super().__init__(daemon=True)
        self._read, self._every, self._end = read, every_s, threading.Event()
        self.peak: float | None = None

    def run(self) -> None:
        # Not at once: the first requests are still on their way.
        while not self._end.wait(self._every):
            value = self._read()
            if value is not None:
                self.peak = value if self.peak is None else max(self.peak, value)

    def stop(self) -> float | None:
        self._end.set()
        self.join(timeout=10)
        return self.peak
