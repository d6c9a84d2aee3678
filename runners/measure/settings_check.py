"""Rows that were measured with other settings than today's are set aside: they describe another configuration. So are
those of which the requests are damaged.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from runners.core import progress
from runners.measure import cell_key, open_loop
from runners.measure.ledger import Ledger
from runners.profiles.points import Comparison, Point, loads
from runners.profiles.profile import Profile


def set_aside(profile: Profile, runs: Path) -> None:
    """Move rows of other settings to cells.old.jsonl, for every configuration of a profile, and say so."""
    for name in profile.configurations:
        ledger = Ledger(runs / profile.name / name)
        if not ledger.cells_path.is_file():
            continue
        moved = ledger.set_aside(current(profile, name) | current_open(profile, name, ledger.rows()))
        if moved:
            progress.say(f"{name}: {moved} cells were measured with other settings; they are in cells.old.jsonl now")


def damaged(profile: Profile, runs: Path, names: Iterable[str]) -> list[str]:
    """Those of the configurations whose requests cannot be read: by a crash, a full disk or a copy cut short."""
    return [name for name in names if Ledger(runs / profile.name / name).requests_fault() is not None]


def set_aside_damaged(profile: Profile, runs: Path, names: Iterable[str]) -> None:
    """Move the ledgers of these configurations out of the way, and say so: they are measured again."""
    for name in names:
        ledger = Ledger(runs / profile.name / name)
        fault = ledger.requests_fault()
        if fault is None:
            continue
        ledger.set_aside_damaged()
        progress.say(f"{name}: requests.parquet {fault}; its cells are in cells.old.jsonl now and are measured again")


def current(profile: Profile, name: str) -> set[str]:
    """The settings of a configuration's cells as the profile is now, at every preset and concurrency."""
    return {
        cell_key.settings(profile, name, Point(*load, 0, 0, preset.requests[load.concurrency]), preset_name)
        for load in loads(profile, Comparison(name))
        for preset_name, preset in profile.workload.presets.items()
    }


def current_open(profile: Profile, name: str, rows: Sequence[dict[str, Any]]) -> set[str]:
    """The settings of its open loops as the profile is now, at the rates of the rows: shares of a saturation give
    another rate in each campaign.
    """
    if profile.workload.open_loop is None:
        return set()
    rates = {(r["workload"], r["rate"], r["depth"]) for r in rows if r.get("load") == "open"}
    known = [(w, rate, preset) for w, rate, preset in rates if preset in profile.workload.presets]
    return {
        cell_key.settings(profile, name, open_loop.point(profile, preset, w, rate, campaign="", start=0), preset)
        for w, rate, preset in known
        if w in profile.workload.prompt_sets
    }
