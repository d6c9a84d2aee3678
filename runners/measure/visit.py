"""One start of a campaign: bring the servers of a comparison up and measure its blocks."""

import random
import time

from runners.core import progress, redact
from runners.core.errors import UserError
from runners.measure import block
from runners.measure.block import NoAnswer
from runners.measure.campaign_record import Visit
from runners.measure.campaign_run import Plan, Run
from runners.measure.cell import never_measured_row
from runners.measure.cell_key import Place
from runners.measure.ledger import Ledger
from runners.measure.server_pool import Alive
from runners.profiles.points import Load, Point
from runners.serve.wait_until_ready import ServerDied, ServerStalled

# One start and one more after a death: one death may be chance (memory, a port); two are the configuration's.
TRIES = 2
NUMBERS = 1000  # block numbers of one start: the sides of a block have the same, also where they are started in turn
AGAIN = 500  # added for a block that is measured once more


def measure(this: Run, plan: Plan) -> None:
    """Measure one start into the ledgers. Never raises for a server's sake: reasons are kept in `this.failed`."""
    sides = _servers(this, plan)
    if not sides:
        return
    if not this.paired:
        for alive in sides:
            alive.context.read_base_answers()  # of this round, too: its base was measured before
    # Of a round all configurations share the number, so that their blocks meet.
    start = len(this.campaign.visits) if this.paired else this.starts_of(plan.comparison)
    began, expected = time.monotonic(), this.seconds(plan)
    done = Visit(start, [a.name for a in sides])
    this.campaign.visits.append(done)
    todo = _blocks(this, plan, start)
    deaths: list[tuple[str, str]] = []
    while sides and (death := _walk(this, sides, todo, done)):
        deaths.append(death)
        sides = _servers(this, plan) if len(deaths) < TRIES and todo else []
    if len(deaths) == TRIES or (deaths and todo):
        this.failed.setdefault(deaths[-1][0], _given_up(deaths))
    for number, point in todo if deaths else []:
        for name in done.configurations:
            context, place = this.pool.context(name), Place(this.campaign.id, start, number)
            context.ledger.append(never_measured_row(context, point, place, _given_up(deaths)), [])
        done.points.append([point.workload, point.concurrency])
    if not done.points:
        this.campaign.visits.remove(done)
    done.seconds = round(time.monotonic() - began, 1)
    this.took_s += done.seconds
    this.foretold_s += expected
    this.save()


def _given_up(deaths: list[tuple[str, str]]) -> str:
    """Why a comparison is measured no further: how often a server was of no use, and why the last time."""
    times = "once" if len(deaths) == 1 else f"{len(deaths)} times"
    return f"given up after it failed {times}, last: {deaths[-1][1]}"


def _servers(this: Run, plan: Plan) -> list[Alive]:
    """The servers of a comparison, the base first. Without its base the other is measured alone; none where it fails,
    and none for a base alone that is measured in other comparisons.
    """
    met = this.met.setdefault(plan.comparison, set())
    tries = 0
    while names := [n for n in plan.comparison.sides if n not in this.failed]:
        if plan.comparison.other in this.failed and any(
            c.other not in this.failed for c in this.comparisons if c.base == plan.comparison.base and c.other
        ):
            return []
        try:
            alive = this.pool.together(tuple(names), met)
        except (UserError, ServerDied, ServerStalled) as error:
            failing = next((n for n in names if n not in this.pool.names()), names[-1])
            tries += 1
            # A missing engine or file is missing the second time too.
            if tries == TRIES or isinstance(error, UserError):
                tries = 0
                this.failed[failing] = redact.without_home(str(error))
                progress.say(f"{failing}: not measured here: {error}")
            continue
        met |= {a.life for a in alive}
        return alive
    return []


def _blocks(this: Run, plan: Plan, start: int) -> list[tuple[int, Point]]:
    """(number, point) of each block of a start, in random order: a slow minute must not meet one concurrency alone."""
    preset, before = this.profile.preset(this.preset), this.starts_of(plan.comparison)
    found = []
    number = start * NUMBERS
    # Over all points of the profile, whichever of them this comparison has: in a round the numbers must meet.
    workload = this.profile.workload
    for load in (Load(w, c) for w in workload.prompt_sets for c in workload.concurrencies):
        repeats = preset.repeats[load.concurrency]
        for n in range(repeats):
            repeat = before * repeats + n
            point = Point(*load, repeat, start, preset.requests[load.concurrency], seed=this.campaign.seed)
            if load in plan.loads:
                found.append((number, point))
            number += 1
    random.Random(f"{this.campaign.seed} {start} {plan.comparison.sides}").shuffle(found)
    return found


def _walk(this: Run, sides: list[Alive], todo: list[tuple[int, Point]], done: Visit) -> tuple[str, str] | None:
    """Measure the blocks that are left and take each off the list; (which server is of no more use, why), or None."""
    while todo:
        number, point = todo[0]
        if not this.fits(tuple(done.configurations), Load(point.workload, point.concurrency)):
            # What does not fit is not measured; a shorter block of another point may fit.
            todo.pop(0)
            continue
        try:
            rows = block.measure(this.pool, sides, point, this.campaign, done.start, number)
        except NoAnswer as failure:
            this.pool.stop(failure.name)
            return failure.name, str(failure)
        todo.pop(0)
        done.points.append([point.workload, point.concurrency])
        this.save()
        if block.noisy(rows) and number % NUMBERS < AGAIN:
            todo.append((number + AGAIN, point))
        for alive in sides:
            if not alive.server.alive():
                reason = (alive.server.cause() or ("no error in its log", ""))[0]
                if not alive.server.attached:
                    reason = f"the server died: {reason}"
                progress.say(f"{alive.name}: {reason}")
                this.pool.stop(alive.name)
                return alive.name, reason
    return None


def write_statuses(this: Run) -> None:
    """status.json of each configuration: "measured", "partly measured" or "not measured here", with the reason."""
    for name in dict.fromkeys(n for c in this.comparisons for n in c.sides):
        ledger = Ledger(this.runs / this.profile.name / name)
        failure = this.failed.get(name)
        if failure is None and not ledger.folder.is_dir():
            continue
        finished = bool(ledger.finished())
        reason = failure if failure is not None or finished else _why_void(ledger)
        status = "measured" if reason is None else "partly measured" if finished else "not measured here"
        ledger.write_json("status.json", {"status": status, "reason": reason})


def _why_void(ledger: Ledger) -> str:
    """Why a configuration that started has no good cell."""
    rows = ledger.rows()
    if not rows:
        return "there was no time for a cell"
    reasons = rows[-1]["reasons"] or ["no reason was kept"]
    return f"all {len(rows)} cells are void, the last one because {reasons[0]}"
