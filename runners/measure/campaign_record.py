"""A campaign's own file, campaign.json beside the configurations' folders: what it was to do and what it has done.

A campaign is one stretch of measuring on one machine. An interrupted one goes on; a finished one stays as it is, and
another one is added beside it. Blocks of different campaigns are never compared with each other.
"""

import json
import random
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from runners.core import files
from runners.core.errors import UserError

FILE = "campaign.json"


@dataclass
class Visit:
    """A start: which configurations were alive together and what was measured then."""

    start: int
    configurations: list[str]
    points: list[list[Any]] = field(default_factory=list)  # [workload, concurrency] of each block
    seconds: float = 0.0


@dataclass
class Campaign:
    """One campaign. `spent_s`: seconds of measuring so far, interruptions left out."""

    id: str
    seed: int
    preset: str
    started_at: str
    most_starts: int
    seconds: float | None = None  # its budget; None: all starts are made
    spent_s: float = 0.0
    finished: bool = False
    visits: list[Visit] = field(default_factory=list)
    # What it was asked for (None: all of the preset), and for which of these it came to its end.
    configurations: list[str] | None = None
    complete: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # in its last run: configuration -> why it is not measured

    def covers(self, names: Sequence[str] | None) -> bool:
        """Was it asked for all of these configurations? names: None stands for all of the preset."""
        return self.configurations is None or (names is not None and set(names) <= set(self.configurations))

    def is_over(self, names: Sequence[str]) -> bool:
        """Is nothing left to do for these configurations?"""
        return self.finished or set(names) <= set(self.complete)

    def ends(self, names: Sequence[str], preset: Sequence[str]) -> None:
        """Note that it came to its end for these; `preset`: the configurations of its preset."""
        self.complete = [*dict.fromkeys([*self.complete, *names])]
        self.finished = set(self.configurations or preset) <= set(self.complete)

    def forget(self, names: Collection[str]) -> None:
        """Measure these configurations again, as if it had not been done. A start keeps its number: others have rows
        of it.
        """
        for visit in self.visits:
            if set(visit.configurations) & set(names):
                # The time that it took is there again.
                self.spent_s = max(0.0, self.spent_s - visit.seconds)
                visit.points, visit.seconds, self.finished = [], 0.0, False
        self.complete = [name for name in self.complete if name not in names]


def load(folder: Path) -> list[Campaign]:
    """Every campaign of a profile's runs, the first first. UserError for a file that holds something else."""
    path = folder / FILE
    if not path.is_file():
        return []
    advice = "restore it from a copy, or move the whole folder away and measure again"
    found = files.read_json(path, list, advice)
    try:
        return [Campaign(**(c | {"visits": [Visit(**v) for v in c["visits"]]})) for c in found]
    except (TypeError, KeyError) as error:
        raise UserError(
            f"{path.parent.name}/{FILE} holds something else than campaigns ({error}); {advice}."
        ) from error


def save(folder: Path, campaigns: list[Campaign]) -> None:
    """Write campaign.json atomically."""
    text = json.dumps([asdict(c) for c in campaigns], indent=1) + "\n"
    files.write_atomic(folder / FILE, text.encode())


def current(
    folder: Path,
    preset: str,
    most_starts: int,
    seconds: float | None,
    more: bool = False,
    names: Sequence[str] | None = None,
) -> list[Campaign]:
    """The campaigns with the one that is to be measured now as the last: the unfinished one of this preset, or a new
    one. Nothing is added where a finished one of this preset was asked for the same configurations (`names`; None: all
    of the preset), unless `more` asks for another. So it does not matter which configuration is measured first.
    """
    found = load(folder)
    mine = [c for c in found if c.preset == preset]
    if mine and not mine[-1].finished:
        return _last(found, _continued(mine[-1], most_starts, seconds, names))
    done = [c for c in mine if c.covers(names)]
    if done and not more:
        return _last(found, done[-1])
    now = time.gmtime()
    seed = random.SystemRandom().randrange(1_000_000)
    asked = None if names is None else list(names)
    name, started = time.strftime("%Y%m%d-%H%M%S", now), time.strftime("%Y-%m-%dT%H:%M:%SZ", now)
    return [*found, Campaign(name, seed, preset, started, most_starts, seconds, configurations=asked)]


def _continued(one: Campaign, most_starts: int, seconds: float | None, names: Sequence[str] | None) -> Campaign:
    """An unfinished campaign with the limits of now. What it was not asked for before gets a budget of its own."""
    one.most_starts, one.seconds = most_starts, seconds
    if not one.covers(names):
        one.seconds = None if seconds is None else one.spent_s + seconds
        one.configurations = None if names is None else [*dict.fromkeys([*(one.configurations or ()), *names])]
    return one


def _last(found: list[Campaign], one: Campaign) -> list[Campaign]:
    return [c for c in found if c is not one] + [one]
