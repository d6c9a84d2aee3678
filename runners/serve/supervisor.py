"""The guardian: one small process between us and an engine, so that no engine outlives us.

    python -I runners/serve/supervisor.py --log FILE --grace SECONDS -- COMMAND ...

-I: it gets the engine's environment variables, whose PYTHONPATH or PYTHONHOME is not for us.

server_process.py holds the other end of its standard input. When that closes (we ask for the end, or we were killed,
the notebook's kernel included), the guardian brings the whole engine down: TERM to every process, KILL after the grace
time. It adopts what the engine leaves behind (PR_SET_CHILD_SUBREAPER, prctl(2)), so a rank that changed its group or
lost its parent is still found. If the guardian itself is killed, the engine's leader dies with it (PR_SET_PDEATHSIG),
and server_process.py, if it still lives, ends the rest. Standard library only, so that it starts at once.

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
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
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


class Guardian:
    """An engine's process group: started, watched, brought down."""

    def __init__(self, argv: list[str], log: str, grace_s: float):
        self.grace_s = grace_s
        self.returncode: int | None = None
        self.parent = os.getppid()
        libc = ctypes.CDLL(None)
        # Before the engine starts: what it leaves behind then becomes our child, wherever it moved.
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        with open(log, "ab") as out:
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
        self.leader = self._process.pid
        report(started=self.leader)

    def reap(self) -> None:
        """Collect every child that ended: the leader, and what was adopted."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            if pid == self.leader:
                self.returncode = code
                report(ended=code)
            elif code < 0:
                report(lost=pid, signal=-code)

    def watch(self, stop: list[int]) -> None:
        """Return when the engine's leader ends, our input closes, or a signal asks us to stop (`stop` is not empty)."""
        while self.returncode is None and not stop:
            readable, _, _ = select.select([0], [], [], POLL_S)
            if readable and not os.read(0, 4096):
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


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--log", required=True)
    p.add_argument("--grace", type=float, default=10)
    p.add_argument("argv", nargs=argparse.REMAINDER)
    args = p.parse_args()
    argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: stop.append(n))
    try:
        guardian = Guardian(argv, args.log, args.grace)
    except OSError as error:
        report(failed=f"{error.filename or argv[0]}: {error.strerror}")
        sys.exit(1)
    guardian.watch(stop)
    guardian.bring_down()


if __name__ == "__main__":
    main()
