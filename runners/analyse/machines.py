"""Which machine a set of runs comes from, and how fast and how steady it was with speculation off."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from runners.analyse import results
from runners.core import files, provenance
from runners.measure.ledger import Ledger

ADVICE = "delete it: only the description of the machine is lost"


def records(runs: str | Path, profile: str) -> Iterator[dict[str, Any]]:
    """environment.json of each configuration that has one; UserError for one that cannot be read."""
    for folder in results.folders(runs, profile):
        file = folder / "environment.json"
        if file.is_file():
            yield files.read_json(file, dict, ADVICE)


def identities(runs: str | Path, profile: str) -> set[str]:
    """provenance.identity of every machine that these runs come from; empty where none is recorded."""
    hardware = (record.get("hardware") for record in records(runs, profile))
    return {provenance.identity(h) for h in hardware if isinstance(h, dict) and h}


def hardware_of(record: dict[str, Any]) -> dict[str, Any]:
    """What a record says of the hardware; empty where it says nothing that can be read."""
    hardware = record.get("hardware")
    return hardware if isinstance(hardware, dict) else {}


def description(runs: str | Path, profile: str) -> str:
    """The first record in words: CPU with its features, cores, GPUs, date."""
    record = next(records(runs, profile), None)
    if record is None:
        return "machine not recorded"
    hardware = hardware_of(record)
    features, cores, gpus = (hardware.get(name) for name in ("cpu_features", "cores", "gpus"))
    cpu = hardware.get("cpu")
    if cpu and isinstance(features, list) and features:
        cpu = f"{cpu} ({' '.join(map(str, features))})"
    gpus = f"{len(gpus)} x {gpus[0]}" if isinstance(gpus, list) and gpus else ""
    cores = f"{cores} cores" if cores else ""
    parts = [cpu, cores, gpus, str(record.get("recorded_at") or "")[:10]]
    return ", ".join(str(p) for p in parts if p)


def speeds(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """How fast and how steady each machine was with speculation off: one row an engine that both measured.

    first, second: results.cells. Columns: engine; points: how many (workload, concurrency) of the base both have; tpot:
    the second's TPOT over the first's, geometric mean over points; scatter_a, scatter_b: how far repeats of a point lie
    apart (standard deviation of log TPOT, pooled over points; NaN without repeats). A slow machine does not change
    ratios, an unsteady one does: of two runs of one machine keep the one with less scatter, whatever its results.
    """
    rows = []
    for engine in sorted(set(first["engine"]) & set(second["engine"])):
        means, scatters = [], []
        for cells in (first, second):
            good = results.ok(cells)
            good = good[(good["configuration"] == results.base_of(cells, engine)) & good["tpot_ms_p50"].notna()]
            logs = np.log(good["tpot_ms_p50"].astype(float)).groupby([good["workload"], good["concurrency"]])
            means.append(logs.mean())
            scatters.append(float(np.sqrt(logs.var().mean())))
        apart = (means[1] - means[0]).dropna()
        if len(apart):
            rows.append([engine, len(apart), float(np.exp(apart.mean())), *scatters])
    return pd.DataFrame(rows, columns=["engine", "points", "tpot", "scatter_a", "scatter_b"])


def startup_ratio(first: Path, second: Path) -> float:
    """Seconds until a server was ready, the second's over the first's; first, second: the folders of the runs.

    Geometric mean over the configurations that both started, of each one's median; NaN without any. In a virtual
    machine it shows a slow hour that no counter shows.
    """
    sides = []
    for home in (first, second):
        folders = [p for p in home.iterdir() if p.is_dir()]
        # A server that ran already has no start of ours: its seconds are 0.
        seconds = {p.name: [s["ready_seconds"] for s in Ledger(p).starts() if s["ready_seconds"] > 0] for p in folders}
        sides.append(pd.Series({name: np.log(np.median(v)) for name, v in seconds.items() if v}, dtype=float))
    apart = (sides[1] - sides[0]).dropna()
    return float(np.exp(apart.mean())) if len(apart) else np.nan
