"""The named values that checks and next steps are written in: all names in one table.

Reported by others (reported_values.py):
    case.<configuration>.c1 | c128 | accept_length | accept_rate | d   the case's table
    k25.lowest | highest                 published accept lengths of drafters made for the case's target
    k26.ctx_<context>.c<C>               published throughput with EAGLE-3 over without, of a sister model
    audit.<name>                         SGLang's releases, read from their wheels
Measured on the machine of the runs (measured_values.py):
    run.<configuration>.<workload>.c<C>.<figure>      workload `all` is the pool; figures: STEP_COSTS and SPEEDS there
    sweep.<configuration>.<workload>.c<C>.<figure>    the same of the sweeps
    run.forecast.points | median | worst              forecasts of points that the model had not seen, and their errors
Measured by `specverdict align` (drafter_values.py):
    run.slots.<host|graph>.c<C>                       served accept length by where llama.cpp samples drafts
    run.replay.worst                                  largest |served / replayed - 1|
    run.drift.int4 | next_layer                       median relative distance of states
    run.offset.worst                                  largest offset between a layer id and the boundary it names
    run.fault.<configuration>.<fault>.served | replayed | accepted
    run.target_drift.noise_<noise>.drift | agreement | repeated | accept_length | same_text
In a name, dashes and dots are written as underscores, `+` as `plus`.
"""

import math
from pathlib import Path

from runners.analyse import results, sweeps
from runners.claims import drafter_values, measured_values, reported_values
from runners.claims.expressions import Figure
from runners.core.format import significant_text


class Missing(LookupError):
    """Nobody measured this value on this machine."""


class Void(LookupError):
    """The value's cells are there, but they failed their gates."""


class NamedValues:
    """Values by name; every lookup gives (value, text)."""

    def __init__(self, figures: dict[str, float], void: set[str] | frozenset[str] = frozenset()):
        """void: the points, names without their last part, whose cells failed their gates."""
        self.figures, self.void = figures, void

    def __call__(self, name: str) -> Figure:
        """(value, text); raises Void or Missing where there is no value."""
        value = self.figures.get(name)
        if value is None or math.isnan(value):
            raise Void(name) if name.rpartition(".")[0] in self.void else Missing(name)
        return value, significant_text(value)


def of(runs: str | Path, profile: str) -> NamedValues:
    """Every value of a profile's runs and of its sweeps, and what others reported."""
    figures, void = reported(), set()
    for prefix, name in (("run", profile), ("sweep", sweeps.profile_of(profile))):
        cells, requests = results.cells(runs, name), results.requests(runs, name)
        figures |= measured_values.of_points(cells, requests, prefix)
        void |= measured_values.void_points(cells, prefix)
    figures |= measured_values.of_forecasts(runs, profile) | drafter_values.of_alignment(runs, profile)
    return NamedValues(figures, void)


def reported() -> dict[str, float]:
    """What others reported: the case's table, published figures, SGLang's releases."""
    return reported_values.of_case() | reported_values.of_publications() | reported_values.of_audit()
