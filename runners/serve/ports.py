"""TCP ports: a free one, who holds one, whether anybody listens."""

import socket
from pathlib import Path

import psutil

from runners.core.errors import UserError


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now; another process may take it before it is used."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def taken(host: str, port: int) -> bool:
    """Whether a server could not bind there now."""
    with socket.socket() as s:
        # As servers do: a connection of an earlier server that is still closing (TIME_WAIT) does not count.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError:
            return True
    return False


def listened(port: int) -> bool:
    """Whether anybody listens there, by the kernel's table (proc_pid_net(5)): to connect would disturb the server."""
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(name).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            _, local, _, state, *_ = row.split()  # address and port in hexadecimal; 0A is TCP_LISTEN
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                return True
    return False


def check_port(host: str, port: int) -> None:
    """UserError when somebody listens there, with the process's name where the system tells it."""
    if not taken(host, port):
        return
    who = "another process"
    try:
        for c in psutil.net_connections("tcp"):
            if c.laddr and c.laddr.port == port and c.status == psutil.CONN_LISTEN and c.pid:
                who = f"{psutil.Process(c.pid).name()} (pid {c.pid})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass
    raise UserError(f"Port {port} on {host} is in use by {who}; stop it, or set `port` of the engine in the profile.")
