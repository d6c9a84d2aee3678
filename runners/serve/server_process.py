"""A server that we launched: is it alive, what does its process group do, why did it end."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from runners.core.progress import Progress
from runners.serve.liveness import Snapshot, take_snapshot
from runners.serve.log_tail import LogTail
from runners.serve.ports import listened
from runners.serve.running_server import PhaseSpan

ZOMBIE_S = 10.0  # a dead process that its parent has not collected for this long is a lost rank
WORKER_CPU_S = 5.0  # ... if it had used this much CPU before: a short-lived helper may end as it likes
CLOSING_S = 2.0  # how long a process may take to end after its port closed
SNAPSHOT_AGE_S = 1.0  # a snapshot reads all of /proc: `alive()` may be asked more often than that is worth
ASKED_TO_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)  # how an engine ends its helpers


@dataclass
class Launch:
    """What to start and how to read it. Seconds throughout; `env` is added to a short inherited list."""

    name: str
    argv: list[str]
    env: dict[str, str]
    log_path: Path
    port: int
    phase_of: Callable[[str], str | None]
    first_error: Callable[[Iterable[str]], tuple[str, str] | None]
    host: str = "127.0.0.1"
    health_path: str = "/health"
    budgets: dict[str, float] = field(default_factory=dict)  # by phase; "default" for the others
    stall_seconds: float = 60
    livelock_seconds: float = 900  # CPU alone moves: a compiler may work so for minutes
    total_seconds: float = 4 * 3600
    expected_bytes: int | None = None
    grace_seconds: float = 10
    cwd: Path | None = None


class LaunchedServer:
    """A `RunningServer` that a guardian process (supervisor.py) holds for us.

    The guardian reports on its standard output, one JSON object a line; closing its standard input ends the server.
    """

    attached = False

    def __init__(self, launch: Launch, guardian: "subprocess.Popen[bytes]"):
        assert guardian.stdin is not None and guardian.stdout is not None, "both are pipes (server.py)"
        self.launch, self._guardian = launch, guardian
        self._guardian_input, self._reports = guardian.stdin, guardian.stdout
        self.base_url = f"http://{launch.host}:{launch.port}"
        self.log_path: Path | None = launch.log_path
        self.log_start = launch.log_path.stat().st_size if launch.log_path.is_file() else 0  # bytes of earlier starts
        self.timeline = [PhaseSpan("starting", 0.0)]
        self.ready_seconds = 0.0
        self.returncode: int | None = None
        self.ended = False
        self.lost: str | None = None  # a sentence: which of its processes was lost
        self.failed: str | None = None  # a sentence: why it could not be started
        self.left: list[int] = []  # processes that even KILL does not end
        self.port_seen = False
        self._partial_report = b""
        self._zombies: dict[int, float] = {}  # pid -> when it was first seen dead
        self._cpu_seconds: dict[int, float] = {}  # pid -> CPU time at the last snapshot it was alive in
        self._last: Snapshot | None = None
        os.set_blocking(self._reports.fileno(), False)

    def _read_reports(self) -> None:
        """What the guardian reported since the last time."""
        if self._reports.closed:
            return
        # Asked before reading: its last report is then in the pipe, and not missed.
        guardian_ended = self._guardian.poll() is not None
        try:
            while piece := os.read(self._reports.fileno(), 65536):
                self._partial_report += piece
        except BlockingIOError:
            pass
        *lines, self._partial_report = self._partial_report.split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "ended" in event:
                self.ended, self.returncode = True, event["ended"]
            elif "failed" in event:
                self.ended, self.failed = True, event["failed"]
            elif "left" in event:
                self.left = event["left"]
            elif "lost" in event and self._was_a_worker(event["lost"], -event["signal"]):
                self.lost = f"process {event['lost']} of its group was killed by signal {event['signal']}"
        if guardian_ended and not self.ended:
            self.ended, self.lost = True, "its guardian process was killed"

    def _was_a_worker(self, pid: int, code: int) -> bool:
        """Whether an end is a loss: not of a short-lived helper, nor of one that ended well or was asked to stop."""
        return code != 0 and -code not in ASKED_TO_STOP and self._cpu_seconds.get(pid, 0) > WORKER_CPU_S

    def alive(self) -> bool:
        """False once the leader ended, its port closed, or a process of the group was lost."""
        self._read_reports()
        if self.port_seen and not self.ended and not listened(self.launch.port):
            # A client's connection breaks before the process is gone. Whoever asks because of that must not get True.
            until = time.monotonic() + CLOSING_S
            while not self.ended and time.monotonic() < until:
                time.sleep(0.05)
                self._read_reports()
            if not self.ended:
                self.lost = self.lost or "it no longer listens on its port, although its process is there"
        if not self.ended and (self._last is None or time.monotonic() - self._last.at > SNAPSHOT_AGE_S):
            self.snapshot()
        return not self.ended and self.lost is None

    def snapshot(self) -> Snapshot:
        """What the whole group has used so far; notices on the way a rank that died without its launcher noticing."""
        now = time.monotonic()
        found = take_snapshot(self._guardian.pid, self.launch.log_path, now)
        self._cpu_seconds |= found.cpu_by_pid
        # A rank that its launcher did not notice stays a zombie. One whose launcher collected it and went on cannot be
        # told from a helper that had done its work: that one is not reported.
        for pid, code in found.zombies.items():
            since = self._zombies.setdefault(pid, now)
            if now - since > ZOMBIE_S and self._was_a_worker(pid, code):
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                self.lost = f"process {pid} of its group died {how} and its launcher did not notice"
        if found.members or self._last is None:
            self._last = found  # kept when the guardian is gone: `_kill_leftovers` needs to know whom to end
        return found

    def may_have_lost_a_worker(self) -> bool:
        """A worker is dead, noticed by its launcher or not yet. Silence is then its consequence and no stall."""
        zombies = self._last.zombies if self._last else {}
        return self.lost is not None or any(self._was_a_worker(pid, code) for pid, code in zombies.items())

    def pids(self) -> list[int]:
        """Every process of the group now."""
        try:
            return [p.pid for p in psutil.Process(self._guardian.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def cause(self) -> tuple[str, str] | None:
        """(sentence, kind) of the first real error in the log, else what the exit itself tells."""
        # Only what this start wrote: the file may hold the end of an earlier one.
        found = self.launch.first_error(LogTail(self.launch.log_path, self.log_start).all_lines())
        if found:
            return found
        if self.lost:
            return self.lost, "killed"
        if self.returncode is not None and self.returncode < 0:
            hint = ": likely the host's memory ran out" if self.returncode == -signal.SIGKILL else ""
            return f"ended by signal {-self.returncode} without an error{hint}", "killed"
        if self.ended:
            return f"ended with exit code {self.returncode} without an error", "other"
        return None

    def bring_down(self, progress: Progress) -> None:
        """End the whole group. Idempotent: the guardian does it, and what it could not end is ended here."""
        self._guardian_input.close()
        try:
            self._guardian.wait(self.launch.grace_seconds + 40)  # supervisor.KILL_S, and as long again to be sure
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()
        self._read_reports()
        if self._guardian.returncode != 0:
            self._kill_leftovers()
        if self.left:
            progress(f"{self.launch.name}: processes {self.left} do not end, not even by KILL; they may hold memory")
        self._reports.close()

    def _kill_leftovers(self) -> None:
        """The guardian itself was killed, and only the engine's leader went with it: end what we saw last."""
        seen = [p for p in (self._last.members if self._last else []) if p.is_running()]
        sessions = set()
        for process in seen:
            try:
                sessions.add(os.getsid(process.pid))
            except OSError:  # it ended meanwhile
                pass
        for pid in psutil.pids():  # also those younger than our last snapshot, if they share a session with one seen
            try:
                if os.getsid(pid) in sessions:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
