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

import datetime
import functools
import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from runners.analyse import results, sweeps
from runners.claims import drafter_values, measured_values, reported_values
from runners.claims.expressions import Figure
from runners.core.format import significant_text
from runners.core.remember import remembered

FAMILIES = ("reported", "run speeds", "run step costs", "sweep speeds", "sweep step costs", "forecasts", "alignment")


class Missing(LookupError):
    """Nobody measured this value on this machine."""


class Void(LookupError):
    """The value's cells are there, but they failed their gates."""


class NamedValues:
    """Values by name; every lookup gives (value, text)."""

    def __init__(
        self,
        figures: dict[str, float],
        void: set[str] | frozenset[str] = frozenset(),
        measured: dict[str, datetime.datetime] | None = None,
    ):
        """void: the points, names without their last part, whose cells failed their gates.

        measured: the beginning of a name -> when the last of those values was measured, where that is known.
        """
        self.figures, self.void, self.measured = figures, void, measured or {}

    def __call__(self, name: str) -> Figure:
        """(value, text); raises Void or Missing where there is no value."""
        value = self.figures.get(name)
        if value is None or math.isnan(value):
            raise Void(name) if name.rpartition(".")[0] in self.void else Missing(name)
        return value, significant_text(value)

    def bounds(self, name: str) -> tuple[float, float]:
        """(low, high) of a value's interval; NaN where it is not known."""
        return self.figures.get(f"{name}_lo", math.nan), self.figures.get(f"{name}_hi", math.nan)

    def last_measured(self, names: list[str]) -> datetime.datetime | None:
        """When the last of these values was measured; None where no date is known."""
        known = []
        for name in names:
            while name and name not in self.measured:
                name = name.rpartition(".")[0]
            known += [self.measured[name]] if name else []
        return max(known, default=None)


class Runs:
    """The named values of a profile's runs and of its sweeps, and what others reported; computed when first needed."""

    def __init__(self, runs: str | Path, profile: str):
        self.runs, self.profile = runs, profile
        self._points: dict[tuple[str, int], NamedValues] = {}

    @functools.cached_property
    def _ledgers(self) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
        """prefix of a name -> (cells, requests)."""
        both = {"run": self.profile, "sweep": sweeps.profile_of(self.profile)}
        return {p: (results.cells(self.runs, n), results.requests(self.runs, n)) for p, n in both.items()}

    def since(self, date: datetime.datetime | None, names: list[str]) -> NamedValues:
        """These values, from what was measured after a date; from everything for None.

        The values of a family come together: a point has its errors from all points.
        """
        return self.families(date, dict.fromkeys(map(_family, names)))

    def families(self, date: datetime.datetime | None, wanted: Iterable[str]) -> NamedValues:
        """The values of these FAMILIES."""
        parts = [self._part(family, date) for family in wanted]
        figures = {name: value for part in parts for name, value in part.figures.items()}
        void = {name for part in parts for name in part.void}
        return NamedValues(figures, void, {name: at for part in parts for name, at in part.measured.items()})

    def _part(self, family: str, date: datetime.datetime | None) -> NamedValues:
        if family == "reported":
            return NamedValues(reported())
        if family == "forecasts":  # they are scored when their points are measured; no date is asked of them
            return NamedValues(measured_values.of_forecasts(self.runs, self.profile))
        if family == "alignment":
            values = drafter_values.of_alignment(self.runs, self.profile, date)
            return NamedValues(values, measured=drafter_values.dates(self.runs, self.profile))
        prefix = family.partition(" ")[0]
        cells, requests = self._ledgers[prefix]
        if date is not None and len(cells):
            cells = cells[measured_values.began(cells) > date]
        # What began after a date is a part of what began after an earlier one: the number of cells tells which.
        if (family, len(cells)) not in self._points:
            speeds = family.endswith("speeds")
            values = (
                measured_values.speeds(cells, prefix) if speeds else measured_values.step_costs(cells, requests, prefix)
            )
            void, dates = measured_values.void_points(cells, prefix), measured_values.dates(cells, prefix)
            self._points[family, len(cells)] = NamedValues(values, void, dates)
        return self._points[family, len(cells)]


def _family(name: str) -> str:
    """Which of FAMILIES a name belongs to."""
    prefix, second = (*name.split("."), "")[:2]
    if prefix not in ("run", "sweep"):
        return "reported"
    if second in ("forecast", *drafter_values.FAMILIES):
        return "forecasts" if second == "forecast" else "alignment"
    speed = name.rpartition(".")[2] in measured_values.SPEEDS
    return f"{prefix} speeds" if speed else f"{prefix} step costs"


@remembered
def of(runs: str | Path, profile: str) -> NamedValues:
    """Every value of a profile's runs and of its sweeps, and what others reported."""
    return Runs(runs, profile).families(None, FAMILIES)


def reported() -> dict[str, float]:
    """What others reported: the case's table, published figures, SGLang's releases."""
    return reported_values.of_case() | reported_values.of_publications() | reported_values.of_audit()
