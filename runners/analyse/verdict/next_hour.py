"""What more measuring would buy: how many points are open, and about how long it takes to decide them."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from runners.analyse import open_points, results
from runners.analyse.open_points import expected_starts
from runners.measure.ledger import Ledger


def next_hour(cells: pd.DataFrame, margin: float, start_seconds: Mapping[str, float]) -> dict:
    """points (measured), open (of them), unknown (of those: one start, so that nobody knows how many more it takes),
    decidable (of the others), minutes (for one more start of the unknown ones and to decide the decidable ones).

    An estimate from this ledger's own seconds: the starts that each point still needs, with as many blocks in each as
    before. Points of one configuration share its starts. start_seconds: of each configuration's server, where known.
    """
    points = open_points.of_cells(cells, margin)
    still_open = open_points.open_only(points).to_dict("records")
    needed = [(row, n) for row in still_open if (n := expected_starts(row))]
    starts: dict[str, int] = {}
    seconds = 0.0
    for row, n in needed:
        name = row["configuration"]
        starts[name] = max(starts.get(name, 0), n)
        seconds += n * _seconds_of_a_start(cells, row)
    for name, n in starts.items():
        base = results.base_of(cells, cells[cells.configuration == name].engine.iloc[0], name)
        seconds += n * sum(start_seconds.get(side or "", 0.0) for side in (name, base))
    unknown = sum(not row["df"] > 0 for row in still_open)
    counts = {"points": len(points), "open": len(still_open), "unknown": unknown, "decidable": len(needed) - unknown}
    return counts | {"minutes": seconds / 60 if needed else None}


def _seconds_of_a_start(cells: pd.DataFrame, row: dict) -> float:
    """Seconds that one start spends on a point: its blocks, on both sides."""
    base = results.base_of(cells, row["engine"], row["configuration"])
    at = results.ok(cells)
    at = at[(at.workload == row["workload"]) & (at.concurrency == row["concurrency"])]
    both = sum(at[at.configuration == side].seconds.astype(float).mean() for side in (row["configuration"], base))
    return float(both) * row["n_blocks"] / max(row["n_starts"], 1)


def start_seconds(runs_root: str | Path, profile: str) -> dict[str, float]:
    """Mean seconds until each configuration's server was ready, from its recorded starts."""
    found = {}
    for folder in results.folders(runs_root, profile):
        ready = [s["ready_seconds"] for s in Ledger(folder).starts() if s.get("ready_seconds")]
        if ready:
            found[folder.name] = sum(ready) / len(ready)
    return found
