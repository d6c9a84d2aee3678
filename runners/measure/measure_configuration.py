"""Measure one configuration: start (or attach to) its server, walk its missing cells, keep what happened.

A server that dies, stalls or lies voids its cell and never the campaign: it is started once more, and
what is then still missing is void with the reason.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from runners.core import machine_speed, progress, redact
from runners.core.errors import UserError
from runners.core.locks import alone
from runners.core.paths import BUILD
from runners.measure import cell_context, cell_key, start_record
from runners.measure.cell import measure as measure_cell
from runners.measure.cell import never_measured_row
from runners.measure.cell_context import CellContext
from runners.measure.ledger import Ledger
from runners.measure.machine_state import NOT_QUIET
from runners.profiles import points
from runners.profiles.points import Point
from runners.profiles.profile import Profile
from runners.serve.from_profile import running
from runners.serve.running_server import RunningServer
from runners.serve.wait_until_ready import ServerDied, ServerStalled

# One start and one more after a death: one death may be chance (memory, a port); two are the configuration's.
STARTS = 2


@dataclass
class Outcome:
    """What became of a configuration: "measured", "partly measured" or "not measured here", with the reason."""

    status: str
    reason: str | None = None


@dataclass
class Start:
    """What one start of the server left: the points that it did not come to, and why it ended early, if it did."""

    left: list[Point]
    death: str | None = None


def configuration(
    profile: Profile, name: str, preset: str | None, runs: Path, round_: int | None = None, strict: bool = False
) -> Outcome:
    """Measure every missing cell of one configuration (of one round, or of all).

    Idempotent: finished cells stay as they are. With `strict` an engine that cannot be installed or started raises
    UserError (it was asked for by name); without, the outcome is "not measured here". An unknown name always raises
    UserError.
    """
    profile.configuration(name)  # an unknown name is an error before anything else
    ledger = Ledger(runs / profile.name / name)
    # The points of every preset: a quick run must not set a full run's cells aside.
    planned = [p for d in profile.workload.presets for p in points.points(profile, d, name)]
    moved = ledger.set_aside({cell_key.key(profile, name, p) for p in planned})
    if moved:
        progress.say(f"{name}: {moved} cells were measured with other settings; they are in cells.old.jsonl now")
    todo = cell_key.missing(profile, name, preset, runs, round_)
    if not todo:
        return Outcome("measured")
    # Not only for the files: a second server on this machine would slow both down.
    with alone(runs / profile.name):
        outcome = _outcome(profile, name, preset, runs, todo, strict)
        if outcome.status != "measured" and ledger.finished():
            outcome.status = "partly measured"
        if ledger.folder.is_dir() or outcome.status != "measured":
            reason = redact.without_home(outcome.reason) if outcome.reason else None
            ledger.write_json("status.json", {"status": outcome.status, "reason": reason})
    return outcome


def _outcome(profile: Profile, name: str, preset: str | None, runs: Path, todo: list[Point], strict: bool) -> Outcome:
    """Measure the points; what keeps the configuration from being measured at all becomes the outcome's reason."""
    try:
        death = _measure_points(cell_context.prepare(profile, name, preset, runs, todo), todo)
    except (UserError, ServerDied, ServerStalled) as error:
        # In a whole report no single configuration ends the campaign; asked for by name, it is an error.
        if strict:
            raise UserError(f"{name}: {error}") from error
        progress.say(f"{name}: not measured here: {error}")
        return Outcome("not measured here", f"{error}")
    return Outcome("partly measured", death) if death else Outcome("measured")


def _measure_points(context: CellContext, todo: list[Point]) -> str | None:
    """Measure the points with as many starts as are allowed; void rows for the rest. Returns the last death's cause."""
    death = None
    for attempt in range(STARTS):
        start = _one_start(context, todo, attempt)
        todo, death = start.left, start.death or death
        if not todo:
            break
    for point in todo:
        reason = f"the server died {STARTS} times, last: {death or 'without a reason in its log'}"
        context.ledger.append(never_measured_row(context, point, reason), [])
    return death


def _one_start(context: CellContext, todo: list[Point], attempt: int) -> Start:
    """Start the server once and measure the points in their order, until the last one or the server's death.

    Raises ServerDied or ServerStalled when it never served a cell, now or before.
    """
    profile, name = context.profile, context.name
    log = BUILD / "logs" / profile.name / f"{name}-{todo[0].round}-{attempt}-{time.strftime('%H%M%S')}.log"
    start = Start(left=list(todo))
    if context.chosen.attach is None and not profile.simulated and not profile.hardware.gpus:
        # Before the start: a server that is up spins, or polls, even at rest. The cores tell nothing of a GPU.
        context.machine_gflops = machine_speed.gflops()
    try:
        began = time.perf_counter()
        with running(profile, name, log) as server:
            progress.emit("span", what="start", seconds=time.perf_counter() - began, configuration=name)
            start_record.add_start(context, server)
            if not server.attached:
                context.machine.started(name, context.chosen.engine, server.ready_seconds, context.machine_gflops)
            _walk(context, server, start)
    except (ServerDied, ServerStalled) as error:
        if start.left == todo and not context.ledger.finished():
            raise  # it never served a cell: not measured here
        start.death = str(error)
    finally:
        start_record.keep_log(log, context)
    return start


def _walk(context: CellContext, server: RunningServer, start: Start) -> None:
    """Measure the points that are left, and take each off the list; ends early when the server is of no more use."""
    warm: int | None = None  # the concurrency that the server is warmed up for
    for point in list(start.left):
        # Once a concurrency: engines compile and allocate for each batch size on first use.
        if point.concurrency != warm:
            warm = point.concurrency
            with progress.span("warm-up", configuration=context.name):
                failed = context.warm_up(server, point)
            if failed and server.alive():
                # Alive and without an answer: waiting for every cell's time-out would show nothing more.
                start.death = f"no answer in the warm-up at C={point.concurrency}: {failed}"
                return
        _measure_one(context, server, point)
        start.left.remove(point)
        if not server.alive():
            start.death = (server.cause() or ("no error in its log", ""))[0]
            progress.say(f"{context.name}: the server died: {start.death}")
            return


def _measure_one(context: CellContext, server: RunningServer, point: Point) -> None:
    """Measure a cell into the ledger; once more when the machine was not quiet."""
    row, results = measure_cell(context, server, point)
    if any(NOT_QUIET in reason for reason in row.reasons or []) and server.alive():
        # Noise is no fault of the configuration: both attempts stay in the ledger.
        context.ledger.append(row, results)
        row, results = measure_cell(context, server, point)
    context.ledger.append(row, results)
