"""A running server, ours or attached: is it alive, what does its group do, why did it end."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from runners.serve.liveness import Snapshot, snapshot
from runners.serve.log_tail import LogTail
from runners.serve.ports import listened

ZOMBIE_S = 10.0  # a dead process its parent has not noticed for this long is a lost rank
WORKER_CPU_S = 5.0  # ... if it had worked before
GOING_S = 2.0  # from its port's closing to the end of its process
LOOK_AGAIN_S = 1.0  # a look reads all of /proc: `alive()` may be asked more often than that is worth
ASKED_TO_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)  # an engine ends its helpers so


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


@dataclass
class PhaseSpan:
    name: str
    start_s: float
    end_s: float | None = None


class Running:
    """A server that answers. `timeline` holds its load phases, `ready_seconds` how long they took."""

    attached = False

    def __init__(self, launch: Launch, guardian: subprocess.Popen):
        self.launch, self._guardian = launch, guardian
        self.base_url = f"http://{launch.host}:{launch.port}"
        self.log_path = launch.log_path
        self.timeline = [PhaseSpan("starting", 0.0)]
        self.ready_seconds = 0.0
        self.returncode: int | None = None
        self.ended = False
        self.lost: str | None = None
        self.failed: str | None = None
        self.left: list[int] = []
        self.port_seen = False
        self._buffer = b""
        self._zombies: dict[int, float] = {}
        self._worked: dict[int, float] = {}
        self._seen: Snapshot | None = None
        self.log_start = launch.log_path.stat().st_size if launch.log_path.is_file() else 0
        os.set_blocking(guardian.stdout.fileno(), False)

    def _listen(self) -> None:
        """What the guardian said since the last time."""
        if self._guardian.stdout.closed:
            return
        # Asked before reading: what it said last is then in the pipe, and not missed.
        over = self._guardian.poll() is not None
        try:
            while piece := os.read(self._guardian.stdout.fileno(), 65536):
                self._buffer += piece
        except BlockingIOError:
            pass
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "ended" in event:
                self.ended, self.returncode = True, event["ended"]
            elif "failed" in event:
                self.ended, self.failed = True, event["failed"]
            elif "left" in event:
                self.left = event["left"]
            elif "lost" in event and self._a_loss(event["lost"], -event["signal"]):
                self.lost = f"process {event['lost']} of its group was killed by signal {event['signal']}"
        if over and not self.ended:
            self.ended, self.lost = True, "its guardian process was killed"

    def _a_loss(self, pid: int, code: int) -> bool:
        """A worker that broke; not a short-lived helper, nor one that ended well or was told to."""
        return code != 0 and -code not in ASKED_TO_STOP and self._worked.get(pid, 0) > WORKER_CPU_S

    def alive(self) -> bool:
        """False once the leader ended, its port closed, or a process of the group was lost."""
        self._listen()
        if self.port_seen and not self.ended and not listened(self.launch.port):
            # A client feels the end before the process is gone; whoever asks because of that must not hear "alive".
            until = time.monotonic() + GOING_S
            while not self.ended and time.monotonic() < until:
                time.sleep(0.05)
                self._listen()
            if not self.ended:
                self.lost = self.lost or "it listens no more, although its process is there"
        if not self.ended and (self._seen is None or time.monotonic() - self._seen.at > LOOK_AGAIN_S):
            self.evidence()
        return not self.ended and self.lost is None

    def evidence(self) -> Snapshot:
        now = time.monotonic()
        found = snapshot(self._guardian.pid, self.log_path, now)
        # A rank that died unnoticed by its launcher stays a zombie. One whose launcher collected it and went on
        # cannot be told from a helper that had done its work: that one is not reported.
        self._worked |= found.cpu_by_pid
        for pid, code in found.zombies.items():
            since = self._zombies.setdefault(pid, now)
            if now - since > ZOMBIE_S and self._a_loss(pid, code):
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                self.lost = f"process {pid} of its group died {how} and its launcher did not notice"
        if found.members or self._seen is None:
            self._seen = found  # kept when the guardian is gone: `_sweep` needs to know whom to end
        return found

    def pids(self) -> list[int]:
        try:
            return [p.pid for p in psutil.Process(self._guardian.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def cause(self) -> tuple[str, str] | None:
        """(sentence, kind) of the first real error in the log, else what the exit itself says."""
        # From where this start began: the file may hold an earlier one's end.
        found = self.launch.first_error(LogTail(self.log_path, self.log_start).all_lines())
        if found:
            return found
        if self.lost:
            return self.lost, "killed"
        if self.returncode is not None and self.returncode < 0:
            hint = ": likely the host's memory ran out" if self.returncode == -9 else ""
            return f"ended by signal {-self.returncode} without an error{hint}", "killed"
        if self.ended:
            return f"ended with exit code {self.returncode} without an error", "other"
        return None

    def bring_down(self, progress: Callable[[str], None]) -> None:
        """Again and again if need be: the guardian does it, and what it could not is done here."""
        self._guardian.stdin.close()
        try:
            self._guardian.wait(self.launch.grace_seconds + 40)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()
        self._listen()
        if self._guardian.returncode != 0:
            self._sweep()
        if self.left:
            progress(f"{self.launch.name}: processes {self.left} do not end, not even by KILL; they may hold memory")
        self._guardian.stdout.close()

    def _sweep(self) -> None:
        """The guardian itself was killed, and only the engine's leader went with it: end what we saw last."""
        seen = [p for p in (self._seen.members if self._seen else []) if p.is_running()]
        sessions = set()
        for process in seen:
            try:
                sessions.add(os.getsid(process.pid))
            except OSError:
                pass
        for pid in psutil.pids():  # younger than our last look, but in a session of theirs
            try:
                if os.getsid(pid) in sessions:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass


class Attached(Running):
    """A server that was there before us: read and measured the same way, never started or stopped."""

    attached = True

    def __init__(self, base_url: str, health_path: str):
        self.base_url, self._health = base_url.rstrip("/"), health_path
        self.timeline, self.ready_seconds, self.log_path = [], 0.0, None

    def alive(self) -> bool:
        """Whatever it answers, late included: a long prefill keeps the health check waiting."""
        try:
            self.health()
        except httpx.ReadTimeout:
            return True
        except (httpx.TransportError, httpx.InvalidURL):
            return False
        return True

    def health(self) -> int:
        return httpx.get(self.base_url + self._health, timeout=10, trust_env=False).status_code

    def evidence(self) -> None:
        return None

    def pids(self) -> list[int]:
        return []

    def cause(self) -> tuple[str, str] | None:
        return None if self.alive() else (f"{self.base_url} does not answer any more", "other")
