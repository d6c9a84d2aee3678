"""A block: one window of each side at one point, seconds apart, in random order.

The ratio of its sides is what a comparison rests on: both met the same minute of the machine and answered the same
prompts. So the sides are judged together, the base first, whose answers are what the other's are compared with.
"""

import random
from collections.abc import Sequence

from runners.core import progress
from runners.measure.campaign_record import Campaign
from runners.measure.cell import judged_row
from runners.measure.cell_key import Place
from runners.measure.cell_row import CellRow
from runners.measure.client import Result
from runners.measure.machine_state import NOT_QUIET
from runners.measure.observation import Observation, observe
from runners.measure.server_pool import Alive, ServerPool
from runners.profiles import points
from runners.profiles.points import Point


class NoAnswer(Exception):
    """A server that is alive answers no request: waiting for every cell's time-out would show nothing more."""

    def __init__(self, name: str, reason: str):
        super().__init__(reason)
        self.name = name


def measure(
    pool: ServerPool, sides: Sequence[Alive], point: Point, campaign: Campaign, start: int, block: int
) -> list[CellRow]:
    """Measure one block into the ledgers: a row of each side, void or not.

    Raises NoAnswer for a server that is alive and answers nothing, once every side has its row; a server that dies
    voids its row.
    """
    # Another order each time, so that no side profits from being second (caches, clocks, a host that calms down).
    order = list(sides)
    random.Random(f"{campaign.seed} {block}").shuffle(order)
    seen: dict[str, Observation] = {}
    for alive in order:
        pool.only(alive)
        label = points.label(alive.name, point)
        progress.emit("cell", label=label, state="begins", configuration=alive.name)
        seen[alive.name] = observe(alive.context, alive.server, point)
        seconds = seen[alive.name].loop.seconds
        progress.emit("cell", label=label, state="ends", configuration=alive.name, seconds=seconds)
        progress.emit("span", what="cell", seconds=seconds, configuration=alive.name)
    rows, silent = [], None
    for alive in sides:  # the base comes first
        place = Place(campaign.id, start, block, order.index(alive))
        row = judged_row(alive.context, point, place, seen[alive.name])
        alive.context.ledger.append(row, seen[alive.name].results)
        rows.append(row)
        results = seen[alive.name].results
        if results and all(r.error for r in results) and alive.server.alive():
            silent = silent or NoAnswer(alive.name, f"no answer at C={point.concurrency}: {results[0].error}")
        if row.status == "ok":
            _add_answers(sides, alive, point, results)
    if silent:
        raise silent
    return rows


def noisy(rows: Sequence[CellRow]) -> bool:
    """Did the machine spoil the block? Noise is no fault of a configuration: the block is measured once more."""
    return any(NOT_QUIET in reason for row in rows for reason in row.reasons or [])


def _add_answers(sides: Sequence[Alive], base: Alive, point: Point, results: Sequence[Result]) -> None:
    """What the base answered, where the other sides look for it."""
    for other in sides:
        if other.context.base == base.name and other is not base:
            other.context.base_answers.add(point.workload, point.concurrency, results)
