"""The servers that are alive together: started when they are needed, frozen while another one is measured.

No more than fit into the machine's memory. A server that a comparison has met before is started anew for it, so that
starts vary and are not one piece of luck.
"""

import itertools
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from runners.core import machine_speed, progress
from runners.core.paths import BUILD
from runners.measure import cell_context, start_record
from runners.measure.cell_context import CellContext
from runners.measure.machine_state import MachineState
from runners.profiles.profile import Profile
from runners.serve.freeze import freeze, thaw
from runners.serve.from_profile import running
from runners.serve.running_server import RunningServer


@dataclass
class Alive:
    """A server that answers, with what its cells are measured with."""

    name: str
    life: int  # counts all starts of the pool: another life is another start
    server: RunningServer
    context: CellContext
    ready_seconds: float
    stack: ExitStack = field(repr=False)
    frozen: bool = False


class ServerPool:
    """At most `at_once` servers of a profile; use as a context, which brings all of them down at its end."""

    def __init__(self, profile: Profile, preset: str | None, runs: Path):
        self.at_once = profile.hardware.servers_at_once
        self._profile, self._preset, self._runs = profile, preset, runs
        self._alive: dict[str, Alive] = {}
        self._contexts: dict[str, CellContext] = {}
        self._lives = itertools.count()
        self._machine = MachineState(profile.gates)

    def __enter__(self) -> "ServerPool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._alive):
            self.stop(name)

    def context(self, name: str) -> CellContext:
        """The context of a configuration's cells, the same one over all of its starts."""
        if name not in self._contexts:
            found = cell_context.prepare(self._profile, name, self._preset, self._runs)
            found.machine = self._machine  # of all configurations together: there is one machine
            self._contexts[name] = found
        return self._contexts[name]

    def together(self, names: tuple[str, ...], not_again: set[int]) -> list[Alive]:
        """These servers, alive and frozen, and no other one beyond what fits.

        not_again: lives that must not serve this time. Raises what `from_profile.running` does; the servers that are
        alive by then stay.
        """
        for name in list(self._alive):
            alive = self._alive[name]
            if alive.life not in not_again or name not in names:
                continue
            if alive.server.attached:  # not ours to start anew: the next start is another visit of the same server
                alive.life = next(self._lives)
            else:
                self.stop(name)
        idle = [n for n in self._alive if n not in names]
        while idle and len({*self._alive, *names}) > self.at_once:
            self.stop(idle.pop(0))
        for name in names:
            if name not in self._alive:
                self._start(name)
        return [self._alive[name] for name in names]

    def names(self) -> list[str]:
        """The configurations whose servers are alive."""
        return list(self._alive)

    def only(self, chosen: Alive) -> None:
        """Let one server run and stop all others. UserError when one of them cannot be frozen."""
        self._freeze_all(but=chosen)
        if chosen.frozen:
            thaw(chosen.server)
            chosen.frozen = False

    def _freeze_all(self, but: Alive | None = None) -> None:
        for other in self._alive.values():
            # A server that is not ours runs elsewhere, or its owner has taken it into account.
            if other is not but and not other.frozen and not other.server.attached:
                freeze(other.server)
                other.frozen = True

    def stop(self, name: str) -> None:
        """Bring a server down and keep its log; nothing for one that is not there."""
        alive = self._alive.pop(name, None)
        if alive is not None:
            if alive.frozen:
                thaw(alive.server)
            alive.stack.close()

    def _start(self, name: str) -> None:
        context = self.context(name)
        self._freeze_all()  # a load must not share the machine either
        ours = context.chosen.attach is None
        if ours and not self._profile.simulated and not self._profile.hardware.gpus:
            # Before the start: a server that is up spins, or polls, even at rest. The cores tell nothing of a GPU.
            context.machine_gflops = machine_speed.gflops()
        log = BUILD / "logs" / self._profile.name / f"{name}-{time.strftime('%m%d-%H%M%S')}.log"
        stack = ExitStack()
        # Called last, after the server is down: its log is then complete.
        stack.callback(lambda: start_record.keep_log(log, context))
        try:
            began = time.perf_counter()
            server = stack.enter_context(running(self._profile, name, log))
            seconds = time.perf_counter() - began
        except BaseException:
            stack.close()
            raise
        progress.emit("span", what="start", seconds=seconds, configuration=name)
        self._alive[name] = Alive(name, next(self._lives), server, context, seconds, stack)
        start_record.add_start(context, server)
        if ours:
            context.machine.started(name, context.chosen.engine, server.ready_seconds, context.machine_gflops)
