"""Launch a server and watch it: loading, stalled or dead, told apart by evidence of life.

A phase that outlasts its budget is only *stalled* when, besides, no process of the group burned CPU, read
bytes, changed its memory or wrote to its log for `stall_seconds`. A failing health check is never death:
a long prefill fails it too. Whatever happens, the group comes down when the context ends (guardian.py).
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from runners.errors import UserError
from runners.evidence import Evidence, look

GUARDIAN = Path(__file__).with_name("guardian.py")
# What an engine may know of our environment; the rest is named in the profile.
INHERITED = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME"),
)
POLL_S = 0.25
LOOK_S = 2.0
ZOMBIE_S = 10.0  # a dead process its parent has not noticed for this long is a lost rank
WORKER_CPU_S = 5.0  # ... if it had worked before


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
    total_seconds: float = 4 * 3600
    expected_bytes: int | None = None
    grace_seconds: float = 10


@dataclass
class PhaseSpan:
    name: str
    start_s: float
    end_s: float | None = None


class ServerDied(Exception):
    """The engine ended by itself; `cause` is its first real error, `phase` where it was."""

    def __init__(self, name: str, phase: str, returncode: int | None, cause: str, kind: str):
        self.cause, self.kind, self.phase, self.returncode = cause, kind, phase, returncode
        super().__init__(f"{name} died while {phase}: {cause}")


class ServerStalled(Exception):
    """Its phase's budget is spent and nothing of it moves."""

    def __init__(self, name: str, phase: str, seconds: float, still_s: float, log: Path):
        self.phase, self.seconds = phase, seconds
        super().__init__(
            f"{name} stalled while {phase}: {seconds:.0f} s in this phase and no CPU, bytes read, memory or log moved "
            f"for {still_s:.0f} s (log: {log})"
        )


def free_port(preferred: int | None) -> int:
    """`preferred` if nobody listens there, else any free one."""
    if preferred is not None and not _taken("127.0.0.1", preferred):
        return preferred
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _taken(host: str, port: int) -> bool:
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError:
            return True
    return False


def check_port(host: str, port: int) -> None:
    """UserError when somebody listens there, with the process's name where the system tells it."""
    if not _taken(host, port):
        return
    who = "another process"
    try:
        for c in psutil.net_connections("tcp"):
            if c.laddr and c.laddr.port == port and c.status == psutil.CONN_LISTEN and c.pid:
                who = f"{psutil.Process(c.pid).name()} (pid {c.pid})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass
    raise UserError(f"Port {port} on {host} is in use by {who}; stop it, or set `port` of the engine in the profile.")


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
        self._buffer = b""
        self._zombies: dict[int, float] = {}
        self._worked: dict[int, float] = {}
        os.set_blocking(guardian.stdout.fileno(), False)

    def _listen(self) -> None:
        """What the guardian said since the last time."""
        try:
            self._buffer += os.read(self._guardian.stdout.fileno(), 65536)
        except BlockingIOError:
            pass
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "ended" in event:
                self.ended, self.returncode = True, event["ended"]
            elif "failed" in event:
                self.ended, self.failed = True, event["failed"]
            elif "lost" in event:
                self.lost = f"process {event['lost']} of its group was killed by signal {event['signal']}"
        if not self.ended and self._guardian.poll() is not None:
            self.ended = True

    def alive(self) -> bool:
        """False once the leader ended, or a process of the group was lost."""
        self._listen()
        if not self.ended:
            self.evidence()
        return not self.ended and self.lost is None

    def evidence(self) -> Evidence:
        now = time.monotonic()
        found = look(self._guardian.pid, self.log_path, now)
        # A rank that died unnoticed by its launcher stays a zombie; short-lived helpers never worked that long.
        self._worked |= found.cpu_by_pid
        for pid in found.zombies:
            since = self._zombies.setdefault(pid, now)
            if now - since > ZOMBIE_S and self._worked.get(pid, 0) > WORKER_CPU_S:
                self.lost = f"process {pid} of its group died and its launcher did not notice"
        return found

    def pids(self) -> list[int]:
        try:
            return [p.pid for p in psutil.Process(self._guardian.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def cause(self) -> tuple[str, str] | None:
        """(sentence, kind) of the first real error in the log, else what the exit itself says."""
        found = None
        if self.log_path.is_file():
            with open(self.log_path, errors="replace") as handle:
                found = self.launch.first_error(line.rstrip("\n") for line in handle)
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

    def log_tail(self, n: int = 20) -> list[str]:
        return self.log_path.read_text(errors="replace").splitlines()[-n:] if self.log_path.is_file() else []


class Attached(Running):
    """A server that was there before us: read and measured the same way, never started or stopped."""

    attached = True

    def __init__(self, base_url: str, health_path: str):
        self.base_url, self._health = base_url.rstrip("/"), health_path
        self.timeline, self.ready_seconds, self.log_path = [], 0.0, None

    def alive(self) -> bool:
        try:
            httpx.get(self.base_url + self._health, timeout=10, trust_env=False)
        except httpx.TransportError:
            return False
        return True

    def evidence(self) -> None:
        return None

    def pids(self) -> list[int]:
        return []

    def cause(self) -> tuple[str, str] | None:
        return None if self.alive() else (f"{self.base_url} does not answer any more", "other")

    def log_tail(self, n: int = 20) -> list[str]:
        return []


@contextmanager
def attach(
    base_url: str, health_path: str = "/health", progress: Callable[[str], None] = lambda _: None
) -> Iterator[Attached]:
    """UserError when nothing answers there."""
    attached = Attached(base_url, health_path)
    if not attached.alive():
        raise UserError(
            f"No server answers at {base_url}{health_path}; start it, or correct `attach.url` in the profile."
        )
    progress(f"attached to {base_url}")
    yield attached


@contextmanager
def serve(launch: Launch, progress: Callable[[str], None] = lambda _: None) -> Iterator[Running]:
    """Start, wait until it answers, yield it, bring the whole group down.

    Raises UserError (no such program), ServerDied, ServerStalled.
    """
    env = {k: os.environ[k] for k in INHERITED if k in os.environ} | launch.env
    argv = [sys.executable, str(GUARDIAN), "--log", str(launch.log_path), "--grace", str(launch.grace_seconds), "--"]
    guardian = subprocess.Popen(
        [*argv, *launch.argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        start_new_session=True,  # Ctrl-C reaches us, not the guardian; our end of its input then closes
    )
    running = Running(launch, guardian)
    try:
        _wait_until_ready(running, launch, progress)
        yield running
    finally:
        # A second Ctrl-C must not interrupt the bringing down: the guardian goes on without us.
        guardian.stdin.close()
        guardian.wait()
        guardian.stdout.close()


class LogTail:
    """The lines a log gained since the last time; a progress bar's carriage returns end lines too."""

    def __init__(self, path: Path):
        self._path, self._offset, self._rest = path, 0, ""

    def lines(self) -> list[str]:
        if not self._path.is_file():
            return []
        with open(self._path, errors="replace", newline="") as handle:
            handle.seek(self._offset)
            text = self._rest + handle.read()
            self._offset = handle.tell()
        *lines, self._rest = text.replace("\r", "\n").split("\n")
        return lines


def _wait_until_ready(running: Running, launch: Launch, progress: Callable[[str], None]) -> None:
    began = time.monotonic()
    tail = LogTail(launch.log_path)
    last_look = look(running._guardian.pid, launch.log_path, began)
    last_life, moved = began, None
    with httpx.Client(timeout=2, trust_env=False) as client:
        while True:
            now = time.monotonic()
            for line in tail.lines():
                phase = launch.phase_of(line)
                # A phase is entered once: engines repeat words of earlier phases later on.
                if phase and phase not in {span.name for span in running.timeline}:
                    running.timeline[-1].end_s = now - began
                    running.timeline.append(PhaseSpan(phase, now - began))
            span = running.timeline[-1]
            if not running.alive():
                raise _death(running, launch, span.name)
            if _answers(client, running.base_url + launch.health_path):
                span.end_s = running.ready_seconds = time.monotonic() - began
                progress(f"{launch.name}: ready after {running.ready_seconds:.0f} s")
                return
            if now - last_look.at >= LOOK_S:
                seen = running.evidence()
                moved = seen.alive_since(last_look)
                last_life = now if moved else last_life
                last_look = seen
                budget = launch.budgets.get(span.name, launch.budgets.get("default", 600))
                in_phase = now - began - span.start_s
                progress(_words(launch, span.name, in_phase, budget, moved, seen))
                if in_phase > budget and now - last_life > launch.stall_seconds:
                    raise ServerStalled(launch.name, span.name, in_phase, now - last_life, launch.log_path)
            if now - began > launch.total_seconds:
                raise ServerStalled(launch.name, span.name, now - began, now - last_life, launch.log_path)
            time.sleep(POLL_S)


def _words(launch: Launch, phase: str, seconds: float, budget: float, moved: str | None, seen: Evidence) -> str:
    over = "" if seconds <= budget else ", over its budget"
    words = f"{launch.name}: {phase}, {seconds:.0f} s of {budget:.0f} s{over}; moving: {moved or 'nothing'}"
    if launch.expected_bytes and seen.read_bytes and launch.expected_bytes > 1e9:
        # Load time = bytes / bandwidth: say it before somebody takes a long load for a hang.
        speed = seen.read_bytes / max(seconds, 1e-9)
        words += f"; {seen.read_bytes / 1e9:.0f} of {launch.expected_bytes / 1e9:.0f} GB at {speed / 1e9:.1f} GB/s"
        if 0 < seen.read_bytes < launch.expected_bytes and speed > 0:
            words += f", about {(launch.expected_bytes - seen.read_bytes) / speed:.0f} s left"
    return words


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == 200
    except httpx.HTTPError:
        return False


def _death(running: Running, launch: Launch, phase: str) -> Exception:
    if running.failed:
        return UserError(f"{launch.name}: {running.failed}; correct the engine's `python` or `command` in the profile.")
    cause, kind = running.cause() or ("no error in its log", "other")
    return ServerDied(launch.name, phase, running.returncode, cause, kind)
