"""Rows that were measured with other settings than today's are set aside: they describe another configuration."""

from pathlib import Path

from runners.core import progress
from runners.measure import cell_key
from runners.measure.ledger import Ledger
from runners.profiles.points import Point
from runners.profiles.profile import Profile


def set_aside(profile: Profile, runs: Path) -> None:
    """Move rows of other settings to cells.old.jsonl, for every configuration of a profile, and say so."""
    for name in profile.configurations:
        ledger = Ledger(runs / profile.name / name)
        if not ledger.cells_path.is_file():
            continue
        moved = ledger.set_aside(current(profile, name))
        if moved:
            progress.say(f"{name}: {moved} cells were measured with other settings; they are in cells.old.jsonl now")


def current(profile: Profile, name: str) -> set[str]:
    """The settings of a configuration's cells as the profile is now, at every preset and concurrency."""
    workload = profile.workload
    return {
        cell_key.settings(profile, name, Point(w, c, 0, 0, preset.requests[c]), preset_name)
        for w in profile.configuration(name).prompt_sets or workload.prompt_sets
        for c in workload.concurrencies
        for preset_name, preset in workload.presets.items()
    }
