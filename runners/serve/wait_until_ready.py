"""Watch a start until the server answers: loading, stalled or dead, told apart by evidence of life.

A phase that outlasts its budget is only *stalled* when, besides, no process of the group used CPU, read bytes, changed
its memory or wrote anything new to its log for `stall_seconds`. It is a *livelock* when for `livelock_seconds` it did
nothing but use CPU. A failing health check is never death: a long prefill fails it too.
"""

import time

import httpx

from runners.core.errors import UserError
from runners.core.progress import Progress
from runners.serve.liveness import ProgressMonitor, Snapshot
from runners.serve.log_tail import LogTail
from runners.serve.ports import listened
from runners.serve.running_server import PhaseSpan
from runners.serve.server_process import LaunchedServer

POLL_S = 0.25
LOOK_S = 2.0  # a snapshot reads all of /proc, which costs CPU that the load itself may need
DEFAULT_BUDGET_S = 600.0


class ServerDied(Exception):
    """The engine ended by itself. `cause` is its first real error, `kind` that error's kind, `phase` where it was."""

    def __init__(self, name: str, phase: str, returncode: int | None, cause: str, kind: str):
        self.cause, self.kind, self.phase, self.returncode = cause, kind, phase, returncode
        super().__init__(f"{name} died while {phase}: {cause}")


class ServerStalled(Exception):
    """Its phase's budget is spent and nothing moves ("stall"), or nothing but CPU ("livelock"); or the whole start took
    longer than it may ("cap"). `seconds` is the time in the phase, for "cap" since the start.
    """

    def __init__(self, text: str, kind: str, phase: str, seconds: float, snapshot: Snapshot):
        self.kind, self.phase, self.seconds, self.snapshot = kind, phase, seconds, snapshot
        super().__init__(text)


def wait_until_ready(server: LaunchedServer, progress: Progress) -> None:
    """Return once the health check succeeds. Raises UserError (cannot be started), ServerDied, ServerStalled."""
    watch = _StartWatch(server, progress)
    url = server.base_url + server.launch.health_path
    # A short time-out: a server that loads may accept a connection and not answer, and the watch must go on.
    with httpx.Client(timeout=2, trust_env=False) as client:
        while True:
            watch.read_log()
            if not server.alive():
                raise watch.death()
            if _answers(client, url):
                watch.note_ready()
                return
            watch.check_phase()
            watch.check_cap()
            time.sleep(POLL_S)


class _StartWatch:
    """One start: its phases so far, and what moved since the last snapshot."""

    def __init__(self, server: LaunchedServer, progress: Progress):
        self._server, self._launch, self._progress = server, server.launch, progress
        self._began = time.monotonic()
        self._tail = LogTail(self._launch.log_path, server.log_start)
        self._last = server.snapshot()
        self._monitor = ProgressMonitor(self._last)
        self._read_before = 0  # bytes read before the present phase

    @property
    def _phase(self) -> PhaseSpan:
        return self._server.timeline[-1]

    def read_log(self) -> None:
        """Follow the log: new lines are news, and some begin a phase."""
        for line in self._tail:
            self._monitor.observe_line(line)
            phase = self._launch.phase_of(line)
            # A phase is entered once: engines repeat words of earlier phases later on.
            if phase and phase not in {span.name for span in self._server.timeline}:
                now = time.monotonic() - self._began
                self._phase.end_s = now
                self._server.timeline.append(PhaseSpan(phase, now))
                self._read_before = self._last.read_bytes

    def note_ready(self) -> None:
        """Close the last phase and note what later checks compare with."""
        server = self._server
        self._phase.end_s = server.ready_seconds = time.monotonic() - self._began
        # False behind a container's address translation: a closed port then proves nothing.
        server.port_seen = listened(self._launch.port)
        server.snapshot()  # from now on snapshots are rare: know every process once
        self._progress(f"{self._launch.name}: ready after {server.ready_seconds:.0f} s")

    def check_phase(self) -> None:
        """Every LOOK_S: report what moves; ServerStalled when the phase is over its budget and gets nowhere."""
        now = time.monotonic()
        if now - self._last.at < LOOK_S:
            return
        self._last = self._server.snapshot()
        self._monitor.observe(self._last)
        budgets, phase = self._launch.budgets, self._phase
        budget = budgets.get(phase.name, budgets.get("default", DEFAULT_BUDGET_S))
        seconds = now - self._began - phase.start_s
        self._progress(self._report(phase.name, seconds, budget))
        # A dead worker explains the silence better: `alive` reports it as soon as its launcher had time to notice.
        if seconds <= budget or self._server.may_have_lost_a_worker():
            return
        if found := self._stuck(now):
            kind, verdict, why = found
            text = f"{self._launch.name} {verdict} while {phase.name}: {seconds:.0f} s in this phase and {why}"
            raise ServerStalled(f"{text} (log: {self._launch.log_path})", kind, phase.name, seconds, self._last)

    def check_cap(self) -> None:
        """ServerStalled when the whole start takes longer than `total_seconds`, however much moves."""
        seconds = time.monotonic() - self._began
        if seconds > self._launch.total_seconds:
            text = (
                f"{self._launch.name} was not ready after {seconds:.0f} s, the most a start may take: still "
                f"{self._phase.name}, moving: {', '.join(self._monitor.moved) or 'nothing'} "
                f"(log: {self._launch.log_path})"
            )
            raise ServerStalled(text, "cap", self._phase.name, seconds, self._last)

    def death(self) -> Exception:
        """The exception for a server that is not alive."""
        server, name = self._server, self._launch.name
        if server.failed:
            return UserError(f"{name}: {server.failed}; correct the engine's `python` or `command` in the profile.")
        cause, kind = server.cause() or ("no error in its log", "other")
        return ServerDied(name, self._phase.name, server.returncode, cause, kind)

    def _stuck(self, now: float) -> tuple[str, str, str] | None:
        """(kind, verdict, why) of a start that gets nowhere; None while it does."""
        silent, spinning = now - self._monitor.life, now - self._monitor.progress
        if silent > self._launch.stall_seconds:
            return "stall", "stalled", f"no CPU, bytes read, memory or log moved for {silent:.0f} s"
        if spinning > self._launch.livelock_seconds:
            return "livelock", "is in a livelock", f"nothing but CPU moved for {spinning:.0f} s"
        return None

    def _report(self, phase: str, seconds: float, budget: float) -> str:
        """One line for the person who waits."""
        over = "" if seconds <= budget else ", over its budget"
        moving = ", ".join(self._monitor.moved) or "nothing"
        sentence = f"{self._launch.name}: {phase}, {seconds:.0f} s of {budget:.0f} s{over}; moving: {moving}"
        read, expected = self._last.read_bytes - self._read_before, self._launch.expected_bytes
        if expected and expected > 1e9 and read > 0 and "weights" in phase:
            # Load time = bytes / bandwidth: show it before somebody takes a long load for a hang.
            speed = read / max(seconds, 1e-9)
            sentence += f"; {read / 1e9:.0f} of {expected / 1e9:.0f} GB at {speed / 1e9:.1f} GB/s"
            if read < expected:
                sentence += f", about {(expected - read) / speed:.0f} s left"
        return sentence


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        with client.stream("GET", url) as answer:  # its text is left unread
            return answer.status_code == 200
    except httpx.HTTPError:
        return False
