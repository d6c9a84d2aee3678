"""`specverdict report`: run the whole graph, follow it with one progress line, end with the verdict.

Snakemake runs the notebooks. This command watches the event file that they write to, so that a person sees what is
running, how far it is and how much time is left.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runners.analyse import forecasts
from runners.analyse.verdict import store
from runners.claims import check
from runners.commands import arguments, show_plan
from runners.commands.prepare import prepare_report
from runners.commands.progress_line import ProgressLine
from runners.core import format, paths, progress
from runners.core.errors import UserError
from runners.measure import cell_key, estimate
from runners.profiles import points
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.report import book
from runners.report.chapters import claims as claims_chapter
from runners.report.chapters.verdict import summary

# What an engine spends loading and answering; the rest of a report is our own.
ENGINE_WORK = ("start", "warm-up", "cell")
# Each signal to Snakemake's group and how long to wait for it to end before the next one (None: as long as it takes).
STOP_SIGNALS = ((signal.SIGINT, 20), (signal.SIGTERM, 10), (signal.SIGKILL, None))
ERROR_LINE = re.compile(r"([\w.]*(?:Error|Exception|Unavailable)): (.+)")
# These only say that a notebook or a step failed; the reason stands in an earlier line.
WRAPPERS = ("PapermillExecutionError", "CalledProcessError", "WorkflowError")


@dataclass(frozen=True)
class ReportRun:
    """What one report is asked to do. `profile_argument` and `runs_argument` are passed on to Snakemake as given."""

    profile: Profile
    profile_argument: str
    preset: str
    runs_argument: str
    only: list[str] | None = None

    @property
    def runs(self) -> Path:
        """The folder that the runs are written to."""
        return paths.runs_root(self.runs_argument)

    @property
    def configurations(self) -> list[str]:
        """The configurations that are measured, in the profile's order or in that of `--only`."""
        return self.only or self.profile.at_preset(self.preset)


def report(
    profile: Profile,
    profile_argument: str,
    preset: str | None,
    runs_argument: str,
    dry_run: bool = False,
    only: list[str] | None = None,
) -> int:
    """Returns the exit code; UserError for bad input, before anything is started."""
    preset = preset or profile.workload.default_preset
    profile.preset(preset)
    for name in only or []:
        profile.configuration(name)
    run = ReportRun(profile, profile_argument, preset, runs_argument, only)
    steps = _steps_to_run(run)
    force = ["--forcerun", "analyse", *steps]
    if dry_run:
        show_plan.show(profile, preset, run.runs)
        return _snakemake(run, ["--dry-run", "--quiet", "rules", *force]).wait()
    run.runs.mkdir(parents=True, exist_ok=True)
    prepare_report(profile, only)
    for step in steps:
        # Snakemake runs only the first of several forced steps of a chain; a step without output always runs.
        (paths.ROOT / step).unlink(missing_ok=True)
    forecast = forecasts.write(profile, preset, run.runs)
    if forecast:
        print(f"{forecast} speed-ups are forecast before anything is measured ({forecasts.FILE})", flush=True)
    cells, expected_s = _announce(run)
    wall_s, spent = _execute(run, ["--quiet", "rules", "progress", *force], cells, expected_s)
    _write_timing(run, wall_s, spent)
    _print_result(run)
    return 0


def _steps_to_run(run: ReportRun) -> list[str]:
    """Snakemake's targets that must run: the steps with something to measure.

    The ledger knows what is missing (settings may have changed, a cell may be void); file times do not.
    """
    return [
        f"build/steps/{run.profile.name}/{run.preset}/run_{name}-{round_}.ipynb"
        for name in run.configurations
        for round_ in range(run.profile.preset(run.preset).rounds)
        if cell_key.missing(run.profile, name, run.preset, run.runs, round_)
    ]


def _announce(run: ReportRun) -> tuple[dict[str, float], float]:
    """Print how much is measured and how long it takes.

    Returns ({label of a missing cell: seconds expected}, seconds expected in all, with starts and warm-ups).
    """
    profile, preset = run.profile, run.preset
    clock = estimate.Clock(profile, paths.PUBLISHED_RUNS, run.runs)
    estimates = estimate.estimate(profile, preset, run.runs, clock)
    expected_s = sum(estimates[name].total for name in run.configurations)
    cells = {
        points.label(name, point): clock.cell(name, point)
        for name in run.configurations
        for point in cell_key.missing(profile, name, preset, run.runs)
    }
    print(
        f"{profile.name}, {preset}: {len(cells)} cells to measure, about {format.minutes(expected_s)} "
        f"(by {estimates[run.configurations[0]].basis}), then the book",
        flush=True,
    )
    return cells, expected_s


def _execute(
    run: ReportRun, options: list[str], cells: dict[str, float], expected_s: float
) -> tuple[float, Counter[str]]:
    """Run the graph and follow it; (seconds, seconds by kind of work). UserError with the reason when it fails."""
    events, log = paths.BUILD / "events.jsonl", paths.BUILD / "report.log"
    events.parent.mkdir(parents=True, exist_ok=True)
    events.write_text("")
    os.environ[progress.VARIABLE] = str(events)  # the notebooks' kernels inherit it
    began = time.monotonic()
    with open(log, "w") as out:
        child = _snakemake(run, options, out)
        try:
            line = ProgressLine(events, cells, expected_s)
            while child.poll() is None:
                line.show()
                time.sleep(1)
            line.show(last=True)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave the group running
            _stop(child)
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if child.returncode != 0:
        raise UserError(f"The report stopped: {_reason(log)} (full output: {log}); finished cells are kept.")
    return time.monotonic() - began, line.spent


def _snakemake(run: ReportRun, options: list[str], out: IO[str] | None = None) -> "subprocess.Popen[bytes]":
    """Start Snakemake in a process group of its own, so that Ctrl-C reaches us and we end the group in order."""
    config = {
        "profile": run.profile_argument,
        "preset": run.preset,
        "runs": run.runs_argument,
        "only": ",".join(run.only or []),
    }
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(paths.ROOT / "Snakefile")]
    # A run takes the whole machine (its rule says so); the chapters after the runs need one core each.
    argv += ["--cores", "2"]
    argv += ["--directory", str(paths.ROOT), "--rerun-triggers", "mtime", "--rerun-incomplete", "--keep-going"]
    argv += ["--nolock", *options, "--config", *(f"{k}={v}" for k, v in config.items())]
    env = os.environ | {
        "PYTHONPATH": str(paths.ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    return subprocess.Popen(
        argv, stdout=out, stderr=subprocess.STDOUT if out else None, env=env, start_new_session=True
    )


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """On any way out: end Snakemake's group; a notebook's kernel ends with papermill, its server with the kernel."""
    for number, patience_s in STOP_SIGNALS:
        if child.poll() is not None:
            return
        os.killpg(child.pid, number)
        try:
            child.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue


def _reason(log: Path) -> str:
    """The error that a notebook ended with, out of everything that Snakemake and papermill printed."""
    lines = log.read_text(errors="replace").splitlines()
    for line in reversed(lines):
        found = ERROR_LINE.match(line)
        if found and not found[1].endswith(WRAPPERS):
            # Our own errors are whole sentences; any other needs its class to be understood.
            return found[2][:400] if found[1].endswith(("UserError", "EngineUnavailable")) else line[:400]
    return lines[-1][:400] if lines else "Snakemake printed nothing"


def _write_timing(run: ReportRun, wall_s: float, spent: Counter[str]) -> None:
    """Print and keep what the time was spent on: the engines, and the report's own overhead."""
    engine_s = sum(spent[kind] for kind in ENGINE_WORK)
    own_s = wall_s - engine_s
    share = own_s / wall_s if wall_s else 0
    print(
        f"\n{wall_s / 60:.1f} min in all; engines loading and answering {engine_s:.0f} s; "
        f"our own overhead {own_s:.0f} s ({share:.0%})"
    )
    print("  " + " · ".join(f"{kind} {seconds:.0f} s" for kind, seconds in sorted(spent.items())))
    timing = {
        "wall_s": wall_s,
        "engine_s": engine_s,
        "own_s": own_s,
        "own_share": share,
        "preset": run.preset,
        "spans_s": dict(spent),
    }
    (run.runs / run.profile.name / f"report-{run.preset}.json").write_text(json.dumps(timing, indent=1) + "\n")


def _print_result(run: ReportRun) -> None:
    """The verdict's table, the claims in a sentence, the book's path, and the command that serves the winner."""
    profile = run.profile
    print()
    print(summary.section(store.load(run.runs, profile.name)))
    print(claims_chapter.claims_sentence(check.counts(check.of(run.runs, profile.name), profile.name)))
    print(f"\nbook:   {book.build_folder(profile.simulated) / '_build' / 'html' / 'index.html'}")
    print(f"serve:  make serve PROFILE={run.profile_argument}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_preset(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--dry-run", action="store_true", help="print commands, environment and plan; start nothing")
    parser.add_argument("--only", action="append", metavar="CONFIGURATION", help="only this one; may be repeated")


def main(args: argparse.Namespace) -> int:
    """Run the report; its exit code."""
    profile = load(args.profile)
    return report(profile, args.profile, args.preset, args.runs, dry_run=args.dry_run, only=args.only)
