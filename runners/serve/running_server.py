"""What can be asked of a server that answers, whether we launched it or it was there before us."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runners.serve.liveness import Snapshot


@dataclass
class PhaseSpan:
    """A load phase, in seconds since the start; `end_s` is None while it lasts."""

    name: str
    start_s: float
    end_s: float | None = None


class RunningServer(Protocol):
    """A server that answers. `LaunchedServer` and `AttachedServer` both fit; who measures need not know which it is."""

    attached: bool  # True: we neither started it nor may stop it
    base_url: str  # without a path: http://host:port
    log_path: Path | None  # None for an attached server: its log is not ours
    timeline: list[PhaseSpan]
    ready_seconds: float  # from the start to the first health check that succeeded; 0 for an attached server

    def alive(self) -> bool:
        """False once it ended, stopped listening or lost one of its processes. Slow is not dead."""

    def snapshot(self) -> Snapshot | None:
        """What its processes have used so far; None where they are not ours to look at."""

    def pids(self) -> list[int]:
        """Its processes; none for an attached server."""

    def cause(self) -> tuple[str, str] | None:
        """(sentence, kind) of why it ended, kinds as in readers/error_kinds.py; None while it lives."""
