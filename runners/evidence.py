"""Evidence of life of a process group: what moved since the last look."""

from dataclasses import dataclass, field
from pathlib import Path

import psutil

# Below these a process is only keeping itself awake (a polling thread, a heartbeat).
CPU_SHARE = 0.02  # of one core
BYTES_READ = 64 * 1024
MEMORY = 1024 * 1024


@dataclass
class Evidence:
    """One look at every process of a group."""

    at: float
    cpu_seconds: float = 0.0
    read_bytes: int = 0
    rss: int = 0
    log_bytes: int = 0
    processes: int = 0
    zombies: set[int] = field(default_factory=set)
    cpu_by_pid: dict[int, float] = field(default_factory=dict)

    def alive_since(self, before: "Evidence") -> str | None:
        """What moved beyond noise ("CPU, bytes read, memory, log"), or None."""
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
        return ", ".join(moved) or None


def look(root_pid: int, log: Path, at: float) -> Evidence:
    """Every process below `root_pid` (the guardian; it is not counted itself)."""
    found = Evidence(at, log_bytes=log.stat().st_size if log.is_file() else 0)
    try:
        tree = psutil.Process(root_pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return found
    for process in tree:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                found.zombies.add(process.pid)
                continue
            times = process.cpu_times()
            spent = times.user + times.system
            found.cpu_by_pid[process.pid] = spent
            # Children that ended are counted with their parent: their work was the group's.
            found.cpu_seconds += spent + times.children_user + times.children_system
            found.rss += process.memory_info().rss
            found.processes += 1
            counters = process.io_counters()
            found.read_bytes += max(counters.read_bytes, getattr(counters, "read_chars", 0))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
