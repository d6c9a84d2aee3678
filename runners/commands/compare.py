"""`specverdict compare A B`: two sets of runs side by side, ratio by ratio, with intervals."""

import argparse

from runners.analyse import machines, results, step_cost
from runners.analyse.compare_runs import pairs
from runners.commands import arguments
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report import archive, markdown
from runners.report.chapters import reproduction as reproduction_chapter
from runners.report.chapters.reproduction import agreement_sentence, pairs_table


def show(a: str, b: str, profile: str, other: str | None = None) -> int:
    """Print both sides. `other`: the profile of `b`, where it differs. UserError when a side has no cells."""
    sides, measured, homes = [], [], []
    for runs, name in ((a, profile), (b, other or profile)):
        root = archive.runs_root(runs)
        cells = results.cells(root, name)
        if cells.empty:
            raise UserError(f"{runs} has no runs of profile {name}; give published, local, a folder, or an archive.")
        sides.append(step_cost.step_costs(cells, results.requests(root, name)))
        measured.append(cells)
        homes.append(results.home(root, name))
        print(f"{runs} ({name}): {len(results.ok(cells))} cells, {machines.description(root, name)}")
    found = pairs(*sides)
    labels = ("A", "B")
    print(f"\nA: {a}, B: {b}\n")
    print(markdown.pipe_table(pairs_table(found[found["workload"] != "all"], *labels)))
    print(f"\n{agreement_sentence(found[found['workload'] != 'all'])}")
    if sentence := reproduction_chapter.machines_sentence(machines.speeds(*measured), machines.startup_ratio(*homes)):
        print(f"\n{sentence}")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    parser.add_argument("a", help="published, local, a folder, or an archive of `share`")
    parser.add_argument("b", help="what to compare it with, in the same forms")
    parser.add_argument("--other-profile", help="the profile of B, where it differs from A's")


def main(args: argparse.Namespace) -> int:
    """Print the comparison."""
    return show(args.a, args.b, load(args.profile).name, args.other_profile)
