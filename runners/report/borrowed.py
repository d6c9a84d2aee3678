"""What a report did not measure itself and shows from the published run, with a mark that says so.

A newcomer's quick report measures no alignment and no sweeps. Their chapters would be empty; they show the published
run instead. Nothing else reads these figures: claims and verdict are about the reader's own cells only.
"""

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runners.analyse import machines, results, sweeps
from runners.core import paths
from runners.drafter import published_results
from runners.profiles.load import load_if_known
from runners.report import book


@dataclass(frozen=True)
class Source:
    """Whose runs a part of a chapter shows. mark: HTML that says so; "" where they are the report's own."""

    runs: str | Path
    profile: str
    mark: str = ""


def alignment(runs: str | Path, profile: str) -> Source:
    """Where the results of `specverdict align` are: here, or in the published run."""
    return _source(runs, profile, lambda *run: any(published_results.folder(*run).glob("*")), lambda name: name)


def swept(runs: str | Path, profile: str) -> Source:
    """Where the profile's sweeps are: here, or in the published run."""
    return _source(runs, profile, lambda root, name: _has_cells(root, sweeps.profile_of(name)), sweeps.profile_of)


def _has_cells(runs: str | Path, profile: str) -> bool:
    return any((folder / "cells.jsonl").is_file() for folder in results.folders(runs, profile))


def _source(
    runs: str | Path, profile: str, measured: Callable[[str | Path, str], bool], machine_of: Callable[[str], str]
) -> Source:
    """The own runs if `measured`, else the published run of this profile, else that of the book's own profile.

    A rehearsal borrows nothing: its pages say that no figure on them was measured. machine_of: the profile whose
    published runs tell machine and date.
    """
    found = load_if_known(profile)
    own = Source(runs, profile)
    if measured(runs, profile) or (found is not None and found.simulated):
        return own
    for name in (found.name if found else profile, book.committed_profile()):
        if measured(paths.PUBLISHED_RUNS, name):
            machine = machines.description(paths.PUBLISHED_RUNS, machine_of(name))
            return Source(paths.PUBLISHED_RUNS, name, mark(machine, name))
    return own


def mark(machine: str, profile: str) -> str:
    """The box above figures of the published run."""
    return (
        f'<div class="borrowed"><strong>Not measured by this report.</strong> Measured on {html.escape(machine)}: '
        f"the published run of <code>{html.escape(profile)}</code>.</div>"
    )
