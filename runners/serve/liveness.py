"""Evidence of life of a process group: what moved between two snapshots, and what its log gained."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import psutil

# Below these a process is only keeping itself awake (a polling thread, a heartbeat).
CPU_SHARE = 0.02  # of one core
BYTES_READ = 64 * 1024
MEMORY = 1024 * 1024  # in bytes, more or less than before
# GPU memory is not read: filling it costs CPU time in the driver, far above CPU_SHARE.
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d|\d\d-\d\d |\d\d:\d\d:\d\d(?:[.,]\d+)?")


@dataclass
class Snapshot:
    """What every process of a group has used so far, added up. `at`: time.monotonic(), in seconds."""

    at: float
    cpu_seconds: float = 0.0
    read_bytes: int = 0
    rss: int = 0  # resident memory, in bytes
    log_bytes: int = 0
    processes: int = 0  # zombies not counted
    zombies: dict[int, int] = field(default_factory=dict)  # pid -> exit code, negative for a signal
    cpu_by_pid: dict[int, float] = field(default_factory=dict)  # seconds, zombies left out
    members: list[psutil.Process] = field(default_factory=list, repr=False)

    def alive_since(self, before: "Snapshot") -> list[str]:
        """What moved by more than noise, of "CPU", "bytes read", "memory", "log"."""
        passed = max(self.at - before.at, 1e-9)
        moved = []
        if self.cpu_seconds - before.cpu_seconds > CPU_SHARE * passed:
            moved.append("CPU")
        if self.read_bytes - before.read_bytes > BYTES_READ:
            moved.append("bytes read")
        if abs(self.rss - before.rss) > MEMORY:
            moved.append("memory")
        if self.log_bytes > before.log_bytes:
            moved.append("log")
        return moved


class ProgressMonitor:
    """When a start last showed life (anything moved), and when it last made progress (more than CPU moved).

    A log line is news once. A heartbeat repeats the same line, but for its time of day, and a program that waits for a
    lost rank writes one for ever. Spinning threads use CPU for ever: that is life, but no progress.
    """

    def __init__(self, first: Snapshot):
        self.life = self.progress = first.at
        self.moved: list[str] = []  # since the last snapshot: of "CPU", "bytes read", "memory", "log"
        self._last = first
        self._news = False  # a new line since the last snapshot
        self._known_lines: set[int] = set()  # hashes: a log of gigabytes need not be kept in memory

    def observe_line(self, line: str) -> None:
        """A line of its log."""
        plain = hash(_CLOCK.sub("", line).strip())
        self._news = self._news or plain not in self._known_lines
        self._known_lines.add(plain)

    def observe(self, snapshot: Snapshot) -> None:
        """The next snapshot of its processes."""
        self.moved = [m for m in snapshot.alive_since(self._last) if m != "log" or self._news]
        self.life = snapshot.at if self.moved else self.life
        self.progress = snapshot.at if set(self.moved) - {"CPU"} else self.progress
        self._last, self._news = snapshot, False


def take_snapshot(root_pid: int, log: Path, at: float) -> Snapshot:
    """Add up every process below `root_pid` (the guardian, which is not counted itself). at: time.monotonic()."""
    found = Snapshot(at, log_bytes=log.stat().st_size if log.is_file() else 0)
    try:
        found.members = psutil.Process(root_pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return found
    for process in found.members:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                found.zombies[process.pid] = exit_code(process.pid)
                continue
            times = process.cpu_times()
            spent = times.user + times.system
            found.cpu_by_pid[process.pid] = spent
            # Children that ended are counted with their parent: their work was the group's.
            found.cpu_seconds += spent + times.children_user + times.children_system
            found.rss += process.memory_info().rss
            found.processes += 1
            counters = process.io_counters()
            # read_bytes counts what came from a disk, read_chars also what came from the page cache or a pipe.
            found.read_bytes += max(counters.read_bytes, getattr(counters, "read_chars", 0))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def exit_code(zombie: int) -> int:
    """How a process ended that its parent has not collected yet: negative for a signal, 0 if it cannot be known.

    From the last field of /proc/PID/stat (proc_pid_stat(5)), since only its parent may wait for it.
    """
    try:
        status = int(Path(f"/proc/{zombie}/stat").read_text().split()[-1])
    except (OSError, ValueError):
        return 0
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) or os.WIFSIGNALED(status) else 0
