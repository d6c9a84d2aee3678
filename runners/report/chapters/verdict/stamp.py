"""Where a verdict comes from, in one sentence: machine, model, engines, dates, campaigns and their minutes."""

from pathlib import Path

import pandas as pd

from runners.analyse import machines, results
from runners.core.format import NOT_MEASURED, listed, minutes
from runners.measure import campaign_record
from runners.profiles.load import load_if_known


def sentence(runs: str | Path, profile: str) -> str:
    """`Measured on ...`; says so where nothing was measured."""
    cells = results.ok(results.cells(runs, profile))
    if cells.empty:
        return f"Machine, model and date: {NOT_MEASURED}."
    parts = [f"Measured on {_machine(runs, profile)}", _model(profile), f"served by {_engines(cells)}", _when(cells)]
    campaigns = [c for c in campaign_record.load(results.home(runs, profile)) if c.visits]
    if campaigns:
        spent = minutes(sum(c.spent_s for c in campaigns))
        parts.append(f"{len(campaigns)} {'campaign' if len(campaigns) == 1 else 'campaigns'} of {spent} in all")
    return "; ".join(part for part in parts if part) + "."


def _machine(runs: str | Path, profile: str) -> str:
    """The processor and the accelerators that the first configuration with a record ran on."""
    record = next(machines.records(runs, profile), None)
    if record is None:
        return "an unknown machine"
    hardware = machines.hardware_of(record)
    cpu, cores = hardware.get("cpu", "an unknown processor"), hardware.get("cores", "?")
    found = [str(g.get("name", g) if isinstance(g, dict) else g) for g in hardware.get("gpus", [])]
    gpus = pd.Series(found, dtype=str).value_counts()
    cards = [f"{n} x {name}" for name, n in gpus.items()]
    return listed([f"{cores} cores of {cpu}", *cards])


def _model(profile: str) -> str:
    plan = load_if_known(profile)
    return f"{plan.target.name} ({plan.target.precision})" if plan else ""


def _engines(cells: pd.DataFrame) -> str:
    """Each engine with its version."""
    pairs = cells[["engine", "engine_version"]].drop_duplicates().sort_values("engine")
    return listed([f"{engine} {version}" for engine, version in pairs.itertuples(index=False)])


def _when(cells: pd.DataFrame) -> str:
    """The day, or the first and the last one."""
    days = sorted({str(at)[:10] for at in cells["started_at"]})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
