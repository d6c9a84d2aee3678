"""Freeze a server while another one is measured, and thaw it: SIGSTOP and SIGCONT to every process of its group.

Two servers that are alive at the same time can be measured in turn within seconds, so that a ratio is made before the
machine has changed. Even an idle engine must be frozen: vLLM polls on a core, and llama.cpp's threads spin for a while.
The engine's processes are stopped and not its supervisor, which goes on watching. A process that did not stop would
share the machine with what is measured, and no figure would show it: so evidence is required.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.core.errors import UserError
from runners.serve.running_server import RunningServer

WAIT_S = 5.0  # a process in the middle of a disk read stops when the read is over
POLL_S = 0.005
AT_REST = ("T", "t", "Z", "X", "")  # stopped, traced, dead, gone: states in which nothing runs (proc_pid_stat(5))


def freeze(server: RunningServer) -> None:
    """Stop every process of the server's group. UserError if one still runs after WAIT_S, or the server is not ours."""
    until = time.monotonic() + WAIT_S
    while True:
        pids = server.pids()  # asked each time: a process may start between the look and the signal
        if not pids:
            raise UserError(f"{server.base_url} cannot be frozen: its processes are not ours; measure it alone.")
        _send(pids, signal.SIGSTOP)
        running = [pid for pid in pids if state_of(pid) not in AT_REST]
        if not running and server.pids() == pids:
            return
        if time.monotonic() > until:
            thaw(server)
            raise UserError(f"{server.base_url} cannot be frozen: process {running[:1]} still runs; measure it alone.")
        time.sleep(POLL_S)


def thaw(server: RunningServer) -> None:
    """Let every process of the server's group run again. A process that is gone is no error."""
    _send(server.pids(), signal.SIGCONT)


@contextmanager
def frozen(servers: Iterable[RunningServer]) -> Iterator[None]:
    """These servers stand still inside the block and run again after it, whatever happens in it."""
    stopped: list[RunningServer] = []
    try:
        for server in servers:
            freeze(server)
            stopped.append(server)
        yield
    finally:
        for server in stopped:
            thaw(server)


def state_of(pid: int) -> str:
    """The process's state letter (proc_pid_stat(5)): R, S, D, T (stopped), Z ...; "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
