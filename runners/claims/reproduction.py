"""Does it reproduce? This report's runs beside other runs of the same profile: which there are, and their ratios.

data/elsewhere/<machine>/<profile>/ holds other machines' runs (`specverdict publish --machine`). A reader's own report
is compared with the published one too. Ratios of two machines are compared, their speeds are not.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import compare_runs, crossover, results, step_cost
from runners.core import paths

ELSEWHERE = paths.DATA / "elsewhere"
HERE = "this report"
PUBLISHED = "the published run"
NOTHING = "No other runs of this profile stand beside these"


@dataclass(frozen=True)
class Side:
    """One set of runs of a profile. Its tables are computed at first use and then kept."""

    name: str
    runs: Path
    profile: str

    @functools.cached_property
    def cells(self) -> pd.DataFrame:
        """results.cells of these runs."""
        return results.cells(self.runs, self.profile)

    @functools.cached_property
    def requests(self) -> pd.DataFrame:
        """results.requests of these runs."""
        return results.requests(self.runs, self.profile)

    @functools.cached_property
    def costs(self) -> pd.DataFrame:
        """step_cost.step_costs without the pool of workloads."""
        rows = step_cost.step_costs(self.cells, self.requests)
        return rows[rows.workload != "all"]

    @functools.cached_property
    def points(self) -> dict[str, pd.DataFrame]:
        """engine -> step_points.points."""
        return crossover.points(self.cells, self.requests, crossover.drafters(self.profile))


def sides(runs: str | Path, profile: str, elsewhere: Path = ELSEWHERE) -> list[Side]:
    """This report's runs first, then every other set of the same profile; empty where this report has no cell."""
    found = [Side(HERE, paths.runs_root(runs), profile)]
    cells = found[0].cells
    # Simulated cells are compared with nothing.
    if cells.empty or ("simulated" in cells and cells.simulated.isin([True]).any()):
        return []
    others = [(PUBLISHED, paths.PUBLISHED_RUNS)]
    others += [(folder.name, folder) for folder in sorted(elsewhere.iterdir() if elsewhere.is_dir() else ())]
    found += [Side(name, root, profile) for name, root in others if root.resolve() != found[0].runs.resolve()]
    return [side for side in found if len(side.cells)]


def drawn(found: list[Side]) -> pd.DataFrame:
    """One row a ratio that both sides have: what the chart of agreement shows.

    Columns: runs (the other side), configuration, engine, method, workload, concurrency, what, outcome, and the ratio
    `here` and `there`, each with `_lo` and `_hi`.
    """
    names = ["configuration", "engine", "method"]
    parts = []
    for other in found[1:]:
        pairs = compare_runs.pairs(found[0].costs, other.costs)
        for title, column in (("here", "a"), ("there", "b")):
            pairs[[title, f"{title}_lo", f"{title}_hi"]] = pairs[column].tolist() if len(pairs) else None
        pairs = pairs.merge(found[0].costs[names].drop_duplicates(), on="configuration")
        parts.append(pairs.drop(columns=["a", "b"]).assign(runs=other.name))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["runs", *names])
