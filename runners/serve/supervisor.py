"""The guardian: one small process between us and an engine, so that no engine outlives us.

    python -I runners/serve/supervisor.py [--masked] --log FILE --grace SECONDS -- COMMAND ...

-I: it gets the engine's environment variables, whose PYTHONPATH or PYTHONHOME is not for us.

server_process.py holds the other end of its standard input. When that closes (we ask for the end, or we were killed,
the notebook's kernel included), the guardian brings the whole engine down: TERM to every process, KILL after the grace
time. It adopts what the engine leaves behind (PR_SET_CHILD_SUBREAPER, prctl(2)), so a rank that changed its group or
lost its parent is still found. If the guardian itself is killed, the engine's leader dies with it (PR_SET_PDEATHSIG),
and server_process.py, if it still lives, ends the rest. Standard library only, so that it starts at once.

With --masked the first line of its input is a JSON list of texts: secrets that the engine's command line or environment
holds. What the engine prints then goes through the guardian, which leaves them out of the log.

It prints JSON lines:
    {"started": pid}
    {"lost": pid, "signal": n}   an adopted process died by a signal
    {"ended": returncode}        as soon as the leader ended; what it left is brought down after that
    {"failed": why}              it could not be started
    {"left": [pids]}             what even KILL does not end: a process that waits in a driver
"""

import argparse
import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MASK = b"(not shown)"
POLL_S = 0.1
KILL_S = 20.0  # a killed process that is still there waits in the kernel (a driver): report it and end


def report(**facts: object) -> None:
    """One event to whoever started us, as a JSON line."""
    try:
        print(json.dumps(facts), flush=True)
    except OSError:  # whoever read us is gone; the engine must still be brought down
        pass


def descendants(root: int) -> list[int]:
    """Every live process below `root`, by the parents in /proc; zombies are left out."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as handle:
                state, parent = handle.read().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state != "Z":
            children.setdefault(int(parent), []).append(int(name))
    found, edge = [], [root]
    while edge:
        edge = [pid for parent in edge for pid in children.get(parent, [])]
        found += edge
    return found


def send(pids: list[int], number: int) -> None:
    """A signal to each of these processes that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


class MaskedLog:
    """A log file that leaves out certain words of what is written to it, also those that come in two pieces."""

    def __init__(self, path: str, words: Sequence[bytes]):
        self._out = open(path, "ab", buffering=0)  # noqa: SIM115 - closed with the guardian
        self._words = words
        self._pattern = re.compile(b"|".join(re.escape(w) for w in sorted(words, key=len, reverse=True)))
        self._rest = b""  # may be the beginning of a word

    def write(self, piece: bytes) -> None:
        """Write the piece, but for an end that may be the beginning of a word."""
        text = self._rest + piece
        cut = self._complete(text)
        self._put(text[:cut])
        self._rest = text[cut:]

    def _complete(self, text: bytes) -> int:
        """How far the text can be written: no word begins before and may go on behind it."""
        longest = max(len(w) for w in self._words)
        ends = range(max(0, len(text) - longest + 1), len(text))
        cut = next((i for i in ends if any(w.startswith(text[i:]) for w in self._words)), len(text))
        # A whole word may lie across: it is written with what follows.
        return next((m.start() for m in self._pattern.finditer(text) if m.start() < cut < m.end()), cut)

    def _put(self, text: bytes) -> None:
        try:
            self._out.write(self._pattern.sub(MASK, text))
        except OSError:  # a full disk must not end the engine
            pass

    def end(self) -> None:
        """Write what was held back: nothing more will come."""
        self._put(self._rest)
        self._rest = b""


class Guardian:
    """An engine's process group: started, watched, brought down."""

    def __init__(self, argv: list[str], log: str, grace_s: float, hidden: Sequence[bytes] = ()):
        self.grace_s = grace_s
        self.returncode: int | None = None
        self.parent = os.getppid()
        libc = ctypes.CDLL(None)
        # Before the engine starts: what it leaves behind then becomes our child, wherever it moved.
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._masked = MaskedLog(log, hidden) if hidden else None
        self._printed: int | None = None  # where we read what it prints
        if self._masked is None:
            out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        else:
            self._printed, out = os.pipe()
            os.set_blocking(self._printed, False)
        try:
            # Kept: a dropped Popen whose child has ended already collects it by itself, and the exit code would never
            # reach `reap`.
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
            )
        finally:
            os.close(out)
        self.leader = self._process.pid
        report(started=self.leader)

    def copy_log(self) -> None:
        """Write what the engine has printed until now into its log, masked; nothing where it writes there itself."""
        for _ in range(16):  # an engine that never stops printing must not keep us here
            if self._printed is None or self._masked is None:
                return
            try:
                piece = os.read(self._printed, 65536)
            except BlockingIOError:
                return
            if piece:
                self._masked.write(piece)
            else:  # every process that could print is gone
                os.close(self._printed)
                self._printed = None
                self._masked.end()

    def reap(self) -> None:
        """Collect every child that ended: the leader, and what was adopted."""
        self.copy_log()
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            if pid == self.leader:
                self.copy_log()  # whoever hears of the end looks for its cause in the log
                self.returncode = code
                report(ended=code)
            elif code < 0:
                report(lost=pid, signal=-code)

    def watch(self, stop: list[int]) -> None:
        """Return when the engine's leader ends, our input closes, or a signal asks us to stop (`stop` is not empty)."""
        while self.returncode is None and not stop:
            pipes = [0] if self._printed is None else [0, self._printed]
            readable, _, _ = select.select(pipes, [], [], POLL_S)
            if 0 in readable and not os.read(0, 4096):
                return
            # Our parent is gone, although our input may stay open: a forked child of its may hold the other end.
            if os.getppid() != self.parent:
                return
            self.reap()

    def bring_down(self) -> None:
        """TERM, then KILL, until nothing is left below us."""
        deadline = time.monotonic() + self.grace_s
        send(descendants(os.getpid()), signal.SIGTERM)
        send(
            descendants(os.getpid()), signal.SIGCONT
        )  # a frozen process (freeze.py) hears TERM only once it runs again
        while descendants(os.getpid()) and time.monotonic() < deadline:
            self.reap()
            time.sleep(POLL_S)
        deadline = time.monotonic() + KILL_S
        while left := descendants(os.getpid()):
            if time.monotonic() > deadline:
                report(left=left)
                break
            send(left, signal.SIGKILL)
            self.reap()
            time.sleep(POLL_S)
        self.reap()
        if self._masked is not None:
            self._masked.end()


def first_line() -> bytes:
    """The first line of our input, byte by byte: `watch` must see what follows."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--log", required=True)
    p.add_argument("--grace", type=float, default=10)
    p.add_argument("--masked", action="store_true")
    p.add_argument("argv", nargs=argparse.REMAINDER)
    args = p.parse_args()
    argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: stop.append(n))
    try:
        words = json.loads(first_line() or b"[]") if args.masked else []
        hidden = [word.encode(errors="surrogatepass") for word in words]
        guardian = Guardian(argv, args.log, args.grace, hidden)
    except OSError as error:
        report(failed=f"{error.filename or argv[0]}: {error.strerror}")
        sys.exit(1)
    guardian.watch(stop)
    guardian.bring_down()


if __name__ == "__main__":
    main()
