"""A campaign's own file, campaign.json beside the configurations' folders: what it was to do and what it has done.

A campaign is one stretch of measuring on one machine. An interrupted one goes on; a finished one stays as it is, and
another one is added beside it. Blocks of different campaigns are never compared with each other.
"""

import json
import random
import time
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


def current(folder: Path, preset: str, most_starts: int, seconds: float | None, more: bool = False) -> list[Campaign]:
    """The campaigns with the one that is to be measured now as the last: the unfinished one of this preset, or a new
    one. Nothing is added where the last one of this preset is finished, unless `more` asks for another.
    """
    found = load(folder)
    mine = [c for c in found if c.preset == preset]
    if mine and not mine[-1].finished:
        unfinished = mine[-1]
        unfinished.most_starts, unfinished.seconds = most_starts, seconds
        return [c for c in found if c is not unfinished] + [unfinished]
    if mine and not more:
        return [c for c in found if c is not mine[-1]] + [mine[-1]]
    now = time.gmtime()
    seed = random.SystemRandom().randrange(1_000_000)
    name = time.strftime("%Y%m%d-%H%M%S", now)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", now)
    return [*found, Campaign(name, seed, preset, started, most_starts, seconds)]
