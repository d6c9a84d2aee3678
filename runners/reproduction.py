"""Does it reproduce? Runs of the same profile set beside this report's: ratio by ratio, use by use, claim by claim.

data/elsewhere/<machine>/<profile>/ holds other machines' runs, as `publish --machine` left them; a report of one's own
is set beside the published one too. Speeds of two machines are not compared, but for how fast and steady each was.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners import (
    breakeven,
    claims,
    compare,
    forecasts,
    intervals,
    machines,
    paths,
    payoff,
    step_model,
    sweeps,
    tables,
    verdict,
)

PLACE = paths.DATA / "elsewhere"
HERE = "this report"
PUBLISHED = "the published run"
NOTHING = "No other runs of this profile stand beside these"


@dataclass(frozen=True)
class Side:
    """One set of runs of a profile; what is derived from it is derived once."""

    name: str
    runs: Path
    profile: str

    @functools.cached_property
    def cells(self) -> pd.DataFrame:
        return tables.cells(self.runs, self.profile)

    @functools.cached_property
    def requests(self) -> pd.DataFrame:
        return tables.requests(self.runs, self.profile)

    @functools.cached_property
    def costs(self) -> pd.DataFrame:
        """breakeven.step_costs without the pool of workloads."""
        rows = breakeven.step_costs(self.cells, self.requests)
        return rows[rows.workload != "all"]

    @functools.cached_property
    def points(self) -> dict[str, pd.DataFrame]:
        """engine -> step_model.points."""
        return payoff.points(self.cells, self.requests, payoff.drafters(self.profile))


def sides(runs: str | Path, profile: str, place: Path = PLACE) -> list[Side]:
    """This report's runs first, then every other set of the same profile; empty where this report holds no cell."""
    found = [Side(HERE, paths.runs_root(runs), profile)]
    cells = found[0].cells
    # What a stand-in said is set beside nothing.
    if cells.empty or ("simulated" in cells and cells.simulated.isin([True]).any()):
        return []
    others = [(PUBLISHED, paths.PUBLISHED_RUNS)]
    others += [(folder.name, folder) for folder in sorted(place.iterdir() if place.is_dir() else ())]
    found += [Side(name, root, profile) for name, root in others if root.resolve() != found[0].runs.resolve()]
    return [side for side in found if len(side.cells)]


def machine_table(found: list[Side]) -> pd.DataFrame:
    """What each machine was, what it measured, and how well its speed-ups are foretold (median error, worst): by its
    own cells of the other concurrencies; before new points were measured, by the model's form of today; and by this
    report's cells alone, accept lengths known.
    """
    columns = ["runs", "machine", "cells", "void", "own C kept out", "new points, told before", "from this report"]
    rows = []
    for side in found:
        good = len(tables.ok(side.cells))
        own, before = _errors(payoff.score(side.points)), _told_before(side)
        other = _errors(_foretold(found[0], side)) if side is not found[0] else ""
        words = machines.words(side.runs, side.profile)
        rows.append([side.name, words, good, len(side.cells) - good, own, before, other])
    return pd.DataFrame(rows, columns=columns).rename(columns={"own C kept out": f"own C={payoff.HELD_OUT} kept out"})


def _told_before(side: Side) -> str:
    """Scores of forecasts of points that the model had not seen, its sweeps among them."""
    new = forecasts.of_new_points(side.runs, side.profile, sweeps.profile_of(side.profile))
    new = new[new["terms"] == forecasts.TERMS]
    return f"{_errors(new)} ({len(new)} points)" if len(new) else tables.NOT_MEASURED


def _foretold(first: Side, other: Side) -> pd.DataFrame:
    """Speed-ups there by the step model of the cells here: step_model.scored."""
    models = payoff.models(first.points)
    parts = []
    for engine, rows in other.points.items():
        if engine in models:
            told = step_model.forecasts(models[engine][0], rows)
            parts.append(step_model.scored(told, rows))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["error"])


def _errors(scores: pd.DataFrame) -> str:
    median, worst = payoff.errors(scores)
    return tables.NOT_MEASURED if pd.isna(median) else f"{median:.1%}, {worst:.0%}"


def said(found: list[Side]) -> str:
    """A paragraph an other machine: how many ratios agree, and how fast and steady it was."""
    if len(found) < 2:
        return f"{NOTHING}."
    parts = []
    for other in found[1:]:
        agreed = compare.said(compare.pairs(found[0].costs, other.costs))
        homes = (tables.home(side.runs, side.profile) for side in (found[0], other))
        speed = machines.speeds(found[0].cells, other.cells)
        told = machines.said(speed, machines.starts(*homes), found[0].name, other.name).replace("\n", " ")
        parts.append(f"**{other.name}: {agreed}** {told}")
    return "\n\n".join(parts)


def quoted(found: list[Side]) -> str:
    """The short form for the first page."""
    if len(found) < 2:
        return f"{NOTHING}."
    parts = []
    for other in found[1:]:
        outcomes = compare.pairs(found[0].costs, other.costs)["outcome"]
        parts.append(f"{(outcomes == compare.AGREE).sum()} of {len(outcomes)} ratios agree with {other.name}")
    return f"Set beside other runs of the same profile, {'; '.join(parts)}."


def ratios(found: list[Side], differing: bool = False) -> pd.DataFrame:
    """compare.table of each other side, those that differ first; or those alone."""
    parts = []
    for other in found[1:]:
        pairs = compare.pairs(found[0].costs, other.costs)
        pairs = pairs.sort_values("outcome", key=lambda o: o != compare.DIFFER, kind="stable")
        pairs = pairs[pairs["outcome"] == compare.DIFFER] if differing else pairs
        parts.append(compare.table(pairs, HERE, "there").assign(runs=other.name))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["runs"])


def drawn(found: list[Side]) -> pd.DataFrame:
    """For the chart: runs, configuration, engine, method, workload, concurrency, what, outcome, and the ratio here and
    there with `_lo`, `_hi`.
    """
    names = ["configuration", "engine", "method"]
    parts = []
    for other in found[1:]:
        pairs = compare.pairs(found[0].costs, other.costs)
        for title, column in (("here", "a"), ("there", "b")):
            pairs[[title, f"{title}_lo", f"{title}_hi"]] = pairs[column].tolist() if len(pairs) else None
        pairs = pairs.merge(found[0].costs[names].drop_duplicates(), on="configuration")
        parts.append(pairs.drop(columns=["a", "b"]).assign(runs=other.name))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["runs", *names])


def uses(found: list[Side]) -> pd.DataFrame:
    """What each set of runs says to serve for each use, and by how much that leads."""
    rows = []
    for side in found if len(found) > 1 else ():
        for use, best in verdict.of(side.runs, side.profile)["uses"].items():
            if best is None:
                continue
            value = intervals.written(best["value"], best["lo"], best["hi"], 1)
            lead = verdict.figure(best["ratio"])
            clear = {True: "yes", False: "no", None: ""}[best["clear"]]
            title = verdict.USES[use][0]
            rows.append([title, side.name, best["configuration"], best["concurrency"], value, lead, clear])
    columns = ["use", "runs", "serve", "C", "tok/s", "best / runner-up", "clear"]
    order = [title for title, *_ in verdict.USES.values()]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("use", key=lambda u: u.map(order.index), kind="stable") if rows else frame


def claimed(found: list[Side]) -> pd.DataFrame:
    """Each claim about this profile with its status on every side; sweeps and alignment are measured where they are."""
    columns: dict[str, list[str]] = {}
    for side in found if len(found) > 1 else ():
        mine = [c for c in claims.of(side.runs, side.profile) if c.claim.scope]
        mine = [c for c in mine if c.claim.scope.profile == side.profile]
        columns["claim"] = [c.claim.statement for c in mine]
        columns[side.name] = [f"{c.status} ({c.working})" if c.working else c.status for c in mine]
    return pd.DataFrame(columns or {"claim": []})
