"""`specverdict analyse`: execute the notebooks of the book's pages on existing runs; nothing is measured."""

import argparse

from runners.analyse import results
from runners.commands import arguments
from runners.core import progress
from runners.report.book import ANALYSES
from runners.report.execute import Page, execute


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument(
        "--configurations", nargs="*", default=[], metavar="NAME", help="write the run pages of these, too"
    )


def pages(profile: str, runs: str, configurations: list[str]) -> list[Page]:
    """Every chapter, then a run page for each configuration. The chapter on the verdict writes it beside the runs."""
    given = {"profile": profile, "runs": runs}
    chapters = [Page(name, name, given | ({"write": True} if name == "verdict" else {})) for name in ANALYSES]
    return chapters + [Page("run_configuration", f"run_{c}", given | {"configuration": c}) for c in configurations]


def main(args: argparse.Namespace) -> int:
    """Execute the pages into <runs>/<profile>/notebooks."""
    with progress.span("analysis"):
        found = pages(args.profile, args.runs, args.configurations)
        execute(found, results.home(args.runs, args.profile) / "notebooks")
    return 0
