"""The open loops of a campaign: after its closed loops, each configuration at each rate.

All configurations of an engine are asked at the same rates and meet the same arrivals, so their curves compare. They
are no ratios of one minute: each has its own start, alone on the machine.
"""

import random
from typing import Any

from runners.core import format, progress, redact
from runners.core.errors import UserError
from runners.measure import block, open_loop
from runners.measure.base_answers import of_ledger
from runners.measure.block import NoAnswer
from runners.measure.campaign_record import Visit
from runners.measure.campaign_run import Run
from runners.measure.ledger import Ledger
from runners.measure.server_pool import Alive
from runners.measure.visit import NUMBERS
from runners.serve.wait_until_ready import ServerDied, ServerStalled

FIRST = 900  # of the block numbers of a start; a start's closed blocks have lower ones
Rate = tuple[str, float]  # workload, requests per second


def measure(this: Run) -> None:
    """Measure what is missing of the rates that the preset wants, whatever of the budget is left: it is the closed
    loops' budget, and they take all of it. Never raises for a server's sake.
    """
    todo = {name: left for name, wanted in planned(this).items() if (left := _left(this, name, wanted))}
    if todo:
        count = sum(map(len, todo.values()))
        longest = format.minutes(count * open_loop.longest_seconds(this.profile, this.preset))
        progress.say(f"open loop: {count} windows of {len(todo)} configurations, at most {longest}")
    # A base first: its answers are what the others' are compared with.
    for name in sorted(todo, key=lambda n: this.profile.base_of(n) != n):
        context, base = this.pool.context(name), this.profile.base_of(name)
        if base is not None and base != name:
            context.base_answers = of_ledger(this.pool.context(base).ledger)
        _configuration(this, name, todo[name])


def planned(this: Run) -> dict[str, list[Rate]]:
    """Configuration -> its rates. Shares of a saturation are of the fastest closed loop of its engine."""
    plan = this.profile.workload.open_loop
    if plan is None or _stand_for_this(this):
        return {}
    names = _names(this)
    rows = {name: [r for r in _rows(this, name) if r.get("load") != "open"] for name in names}
    found = {}
    for name in names:
        engine = this.profile.configuration(name).engine
        alike = [row for other in names for row in rows[other] if this.profile.configuration(other).engine == engine]
        sets = this.profile.configuration(name).prompt_sets or this.profile.workload.prompt_sets
        if name not in plan.leave_out and name not in this.failed:
            found[name] = [(w, r) for w, r in open_loop.wanted(this.profile, this.preset, alike) if w in sets]
    return found


def expected_seconds(this: Run) -> float:
    """About how long they take, before any of them is measured."""
    names = [name for name in _names(this) if name not in this.failed]
    return 0.0 if _stand_for_this(this) else open_loop.expected_seconds(this.profile, this.preset, names, this.clock)


def _names(this: Run) -> list[str]:
    return list(dict.fromkeys(n for c in this.comparisons for n in c.sides))


def _stand_for_this(this: Run) -> bool:
    """Has an earlier campaign open loops that stand for this one's, too?"""
    plan = this.profile.workload.open_loop
    if plan is None or not plan.once:
        return False
    ledgers = [Ledger(this.runs / this.profile.name / name) for name in _names(this)]
    rows = [row for ledger in ledgers for row in ledger.rows()]
    return any(row.get("load") == "open" and row.get("campaign") != this.campaign.id for row in rows)


def _rows(this: Run, name: str) -> list[dict[str, Any]]:
    rows = Ledger(this.runs / this.profile.name / name).rows()
    return [row for row in rows if row.get("campaign") == this.campaign.id]


def _left(this: Run, name: str, wanted: list[Rate]) -> list[Rate]:
    """The rates without a row in this campaign."""
    done = {(row["workload"], row["rate"]) for row in _rows(this, name) if row.get("load") == "open"}
    return [one for one in wanted if one not in done]


def _configuration(this: Run, name: str, rates: list[Rate]) -> None:
    """One start of a configuration, and its windows in random order."""
    try:
        (alive,) = this.pool.together((name,), set())
    except (UserError, ServerDied, ServerStalled) as error:
        this.failed[name] = redact.without_home(str(error))
        progress.say(f"{name}: no open loop: {error}")
        return
    start = len(this.campaign.visits)
    this.campaign.visits.append(Visit(start, [name]))
    random.Random(f"{this.campaign.seed} {name}").shuffle(rates)
    for i, rate in enumerate(rates):
        if reason := _window(this, alive, start, i, rate):
            this.pool.stop(name)
            progress.say(f"{name}: the open loop ends early: {reason}")
            return
    this.save()


def _window(this: Run, alive: Alive, start: int, i: int, rate: Rate) -> str | None:
    """One window into the ledger, once more where the machine was not quiet; why the server is of no more use."""
    point = open_loop.point(this.profile, this.preset, *rate, campaign=this.campaign.id, start=start)
    number = start * NUMBERS + FIRST + 2 * i
    try:
        if block.noisy(block.measure(this.pool, [alive], point, this.campaign, start, number)):
            block.measure(this.pool, [alive], point, this.campaign, start, number + 1)
    except NoAnswer as failure:
        return str(failure)
    return None if alive.server.alive() else (alive.server.cause() or ("no error in its log", ""))[0]
