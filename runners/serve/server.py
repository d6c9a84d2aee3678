"""Launch a server and watch it: loading, stalled or dead, told apart by evidence of life.

A phase that outlasts its budget is only *stalled* when, besides, no process of the group burned CPU, read
bytes, changed its memory or wrote anything new to its log for `stall_seconds`, and a *livelock* when for
`livelock_seconds` it did nothing but burn CPU. A failing health check is never death: a long prefill fails it
too. Whatever happens, the group comes down when the context ends (guardian.py).
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from runners.core.errors import UserError
from runners.serve.liveness import ProgressMonitor, Snapshot
from runners.serve.log_tail import LogTail
from runners.serve.ports import listened
from runners.serve.server_process import Attached, Launch, PhaseSpan, Running

GUARDIAN = Path(__file__).with_name("supervisor.py")
# What an engine may know of our environment; the rest is named in the profile.
INHERITED = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES"),
    *("LC_CTYPE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "HF_HOME"),
)
POLL_S = 0.25
LOOK_S = 2.0


class ServerDied(Exception):
    """The engine ended by itself; `cause` is its first real error, `phase` where it was."""

    def __init__(self, name: str, phase: str, returncode: int | None, cause: str, kind: str):
        self.cause, self.kind, self.phase, self.returncode = cause, kind, phase, returncode
        super().__init__(f"{name} died while {phase}: {cause}")


class ServerStalled(Exception):
    """Its phase's budget is spent and nothing of it moves, or nothing but CPU; or the cap on the whole start is.

    `kind`: "stall", "livelock" or "cap".
    """

    def __init__(self, text: str, kind: str, phase: str, seconds: float, evidence: Snapshot):
        self.kind, self.phase, self.seconds, self.evidence = kind, phase, seconds, evidence
        super().__init__(text)


@contextmanager
def attach(
    base_url: str, health_path: str = "/health", progress: Callable[[str], None] | None = None
) -> Iterator[Attached]:
    """UserError when nothing answers there, or not with 200: it is loading, or something else."""
    attached = Attached(base_url, health_path)
    url = attached.base_url + health_path
    try:
        status = attached.health()
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise UserError(f"No server answers at {url}; start it, or correct `attach.url` in the profile.") from error
    if status != 200:
        raise UserError(f"{url} answers {status}; wait until it is ready, or correct `attach.url` in the profile.")
    (progress or _quiet)(f"attached to {base_url}")
    yield attached


@contextmanager
def serve(launch: Launch, progress: Callable[[str], None] | None = None) -> Iterator[Running]:
    """Start, wait until it answers, yield it, bring the whole group down.

    Raises UserError (no such program), ServerDied, ServerStalled.
    """
    progress = progress or _quiet
    if launch.cwd is not None and not launch.cwd.is_dir():
        raise UserError(f"{launch.name}: its working folder {launch.cwd} does not exist; make it or name another.")
    env = {k: os.environ[k] for k in INHERITED if k in os.environ} | launch.env
    flags = ["--log", str(launch.log_path.absolute()), "--grace", str(launch.grace_seconds), "--"]
    guardian = subprocess.Popen(
        [sys.executable, "-I", str(GUARDIAN), *flags, *launch.argv],
        cwd=launch.cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        start_new_session=True,  # Ctrl-C reaches us, not the guardian; our end of its input then closes
    )
    try:
        running = Running(launch, guardian)
    except BaseException:
        guardian.stdin.close()  # no `running` to bring down yet; the guardian does it alone
        raise
    try:
        _wait_until_ready(running, launch, progress)
        yield running
    finally:
        # A second Ctrl-C must not interrupt the bringing down: the guardian goes on without us.
        running.bring_down(progress)


def _quiet(_: str) -> None:
    pass


def _wait_until_ready(running: Running, launch: Launch, progress: Callable[[str], None]) -> None:
    began = time.monotonic()
    tail = LogTail(launch.log_path, running.log_start)
    last_look = running.evidence()
    pulse = ProgressMonitor(last_look)
    read_before = 0  # this phase
    with httpx.Client(timeout=2, trust_env=False) as client:
        while True:
            now = time.monotonic()
            for line in tail:
                pulse.hear(line)
                phase = launch.phase_of(line)
                # A phase is entered once: engines repeat words of earlier phases later on.
                if phase and phase not in {span.name for span in running.timeline}:
                    running.timeline[-1].end_s = now - began
                    running.timeline.append(PhaseSpan(phase, now - began))
                    read_before = last_look.read_bytes
            span = running.timeline[-1]
            if not running.alive():
                raise _death(running, launch, span.name)
            if _answers(client, running.base_url + launch.health_path):
                span.end_s = running.ready_seconds = time.monotonic() - began
                # Not so behind a container's address translation: then the port says nothing.
                running.port_seen = listened(launch.port)
                running.evidence()  # from now on looks are rare: know every process once
                progress(f"{launch.name}: ready after {running.ready_seconds:.0f} s")
                return
            if now - last_look.at >= LOOK_S:
                last_look = running.evidence()
                pulse.look(last_look)
                budget = launch.budgets.get(span.name, launch.budgets.get("default", 600))
                in_phase = now - began - span.start_s
                progress(_words(launch, span.name, in_phase, budget, pulse, last_look.read_bytes - read_before))
                if in_phase > budget and (found := _stuck(launch, pulse, now)):
                    kind, how, why = found
                    text = f"{launch.name} {how} while {span.name}: {in_phase:.0f} s in this phase and {why}"
                    text += f" (log: {launch.log_path})"
                    raise ServerStalled(text, kind, span.name, in_phase, last_look)
            if now - began > launch.total_seconds:
                text = (
                    f"{launch.name} was not ready after {now - began:.0f} s, the most a start may take: still "
                    f"{span.name}, moving: {', '.join(pulse.moved) or 'nothing'} (log: {launch.log_path})"
                )
                raise ServerStalled(text, "cap", span.name, now - began, last_look)
            time.sleep(POLL_S)


def _stuck(launch: Launch, pulse: ProgressMonitor, now: float) -> tuple[str, str, str] | None:
    """(kind, words, why) of a start that gets nowhere; None while it does."""
    if now - pulse.life > launch.stall_seconds:
        return "stall", "stalled", f"no CPU, bytes read, memory or log moved for {now - pulse.life:.0f} s"
    if now - pulse.progress > launch.livelock_seconds:
        return "livelock", "is in a livelock", f"nothing but CPU moved for {now - pulse.progress:.0f} s"
    return None


def _words(launch: Launch, phase: str, seconds: float, budget: float, pulse: ProgressMonitor, read: int) -> str:
    over = "" if seconds <= budget else ", over its budget"
    moving = ", ".join(pulse.moved) or "nothing"
    words = f"{launch.name}: {phase}, {seconds:.0f} s of {budget:.0f} s{over}; moving: {moving}"
    if launch.expected_bytes and launch.expected_bytes > 1e9 and read > 0 and "weights" in phase:
        # Load time = bytes / bandwidth: say it before somebody takes a long load for a hang.
        speed = read / max(seconds, 1e-9)
        words += f"; {read / 1e9:.0f} of {launch.expected_bytes / 1e9:.0f} GB at {speed / 1e9:.1f} GB/s"
        if read < launch.expected_bytes:
            words += f", about {(launch.expected_bytes - read) / speed:.0f} s left"
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
