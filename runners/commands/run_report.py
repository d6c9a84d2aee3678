"""`make report`: run the whole graph, follow it with one progress line, end with the verdict.

Snakemake runs the notebooks; this program only watches the event file they write to, so that a person
sees what is running, how far it is and how long is left.
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
from pathlib import Path

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
from runners.report.chapters import verdict as verdict_chapter

# What an engine spends loading and answering; the rest of a report is our own.
ENGINE_WORK = ("start", "warm-up", "cell")


def report(
    profile: Profile,
    profile_argument: str,
    depth: str | None,
    runs_argument: str,
    dry_run: bool = False,
    only: list[str] | None = None,
) -> int:
    """Returns the exit code; UserError for bad input before anything is started."""
    runs = paths.runs_root(runs_argument)
    depth = depth or profile.workload.default_depth
    profile.depth(depth)
    for name in only or []:
        profile.configuration(name)
    steps = _steps_to_run(profile, depth, runs, only)
    force = ["--forcerun", "analyse", *steps]
    if dry_run:
        show_plan.show(profile, depth, runs)
        return _snakemake(
            profile_argument, depth, runs_argument, only, ["--dry-run", "--quiet", "rules", *force]
        ).wait()
    runs.mkdir(parents=True, exist_ok=True)
    prepare_report(profile, only)
    for step in steps:
        # Snakemake runs only the first of several forced steps of a chain; a step without output always runs.
        (paths.ROOT / step).unlink(missing_ok=True)
    forecast = forecasts.write(profile, depth, runs)
    if forecast:
        print(f"{forecast} speed-ups are forecast before anything is measured ({forecasts.FILE})", flush=True)
    clock = estimate.Clock(profile, paths.PUBLISHED_RUNS, runs)
    estimates = estimate.estimate(profile, depth, runs, clock)
    names = only or profile.at_depth(depth)
    expected = sum(estimates[name].total for name in names)
    cells = {
        points.label(name, point): clock.cell(name, point)
        for name in names
        for point in cell_key.missing(profile, name, depth, runs)
    }
    basis = estimates[names[0]].basis
    print(
        f"{profile.name}, {depth}: {len(cells)} cells to measure, "
        f"about {format.minutes(expected)} (by {basis}), then the book",
        flush=True,
    )
    events = paths.BUILD / "events.jsonl"
    events.parent.mkdir(parents=True, exist_ok=True)
    events.write_text("")
    os.environ[progress.VARIABLE] = str(events)
    began = time.monotonic()
    log = paths.BUILD / "report.log"
    with open(log, "w") as out:
        options = ["--quiet", "rules", "progress", *force]
        child = _snakemake(profile_argument, depth, runs_argument, only, options, out)
        try:
            follower = ProgressLine(events, cells, expected)
            while child.poll() is None:
                follower.show()
                time.sleep(1)
            follower.show(last=True)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave the group running
            _stop(child)
            signal.signal(signal.SIGINT, signal.default_int_handler)
    wall = time.monotonic() - began
    if child.returncode != 0:
        raise UserError(f"The report stopped: {_why(log)} (everything it printed: {log}); finished cells are kept.")
    _close(profile, profile_argument, runs, depth, wall, follower.spent)
    return 0


def _stop(child: subprocess.Popen) -> None:
    """On any way out: end Snakemake's group; a notebook's kernel ends with papermill, its server with the kernel."""
    for number, patience_s in ((signal.SIGINT, 20), (signal.SIGTERM, 10), (signal.SIGKILL, None)):
        if child.poll() is not None:
            return
        os.killpg(child.pid, number)
        try:
            child.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue


def _steps_to_run(profile: Profile, depth: str, runs: Path, only: list[str] | None) -> list[str]:
    """Snakemake's targets that must run: the steps with something to measure.

    The ledger knows what is missing (settings may have changed, a cell may be void); file times do not.
    """
    return [
        f"build/steps/{profile.name}/{depth}/run_{name}-{round_}.ipynb"
        for name in only or profile.at_depth(depth)
        for round_ in range(profile.depth(depth).rounds)
        if cell_key.missing(profile, name, depth, runs, round_)
    ]


def _snakemake(
    profile_argument: str, depth: str, runs: str, only: list[str] | None, options: list[str], out=None
) -> subprocess.Popen:
    config = {"profile": profile_argument, "depth": depth, "runs": runs, "only": ",".join(only or [])}
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(paths.ROOT / "Snakefile")]
    # A run takes the whole machine (its rule says so); the chapters after the runs need one core each.
    argv += ["--cores", "2"]
    argv += ["--directory", str(paths.ROOT), "--rerun-triggers", "mtime", "--rerun-incomplete", "--keep-going"]
    argv += ["--nolock", *options, "--config", *(f"{k}={v}" for k, v in config.items())]
    env = os.environ | {
        "PYTHONPATH": str(paths.ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    # A group of its own: Ctrl-C reaches us, and we end the group in order.
    return subprocess.Popen(
        argv, stdout=out, stderr=subprocess.STDOUT if out else None, env=env, start_new_session=True
    )


def _why(log: Path) -> str:
    """The error a notebook ended with, out of everything that Snakemake and papermill printed."""
    wrappers = ("PapermillExecutionError", "CalledProcessError", "WorkflowError")
    lines = log.read_text(errors="replace").splitlines()
    for line in reversed(lines):
        found = re.match(r"([\w.]*(?:Error|Exception|Unavailable)): (.+)", line)
        if found and not found[1].endswith(wrappers):
            return found[2][:400] if found[1].endswith(("UserError", "EngineUnavailable")) else line[:400]
    return lines[-1][:400] if lines else "without a word"


def _close(profile: Profile, profile_argument: str, runs: Path, depth: str, wall: float, spent: Counter) -> None:
    """The verdict table, the book's path, the command that serves it, and what the time went on."""

    engine_s = sum(spent[k] for k in ENGINE_WORK)
    own = wall - engine_s
    parts = " · ".join(f"{k} {v:.0f} s" for k, v in sorted(spent.items()))
    share = own / wall if wall else 0
    print(
        f"\n{wall / 60:.1f} min in all; engines loading and answering {engine_s:.0f} s; "
        f"our own overhead {own:.0f} s ({share:.0%})"
    )
    print(f"  {parts}")
    timing = {
        "wall_s": wall,
        "engine_s": engine_s,
        "own_s": own,
        "own_share": share,
        "depth": depth,
        "spans_s": dict(spent),
    }
    (runs / profile.name / f"report-{depth}.json").write_text(json.dumps(timing, indent=1) + "\n")
    print()
    print(verdict_chapter.markdown(store.load(runs, profile.name)))
    print(claims_chapter.claims_sentence(check.counts(check.of(runs, profile.name), profile.name)))
    print(f"\nbook:   {book.place(profile.simulated) / '_build' / 'html' / 'index.html'}")
    print(f"serve:  make serve PROFILE={profile_argument}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    arguments.add_depth(parser)
    arguments.add_runs(parser, "local")
    parser.add_argument("--dry-run", action="store_true", help="print commands, environment and plan; start nothing")
    parser.add_argument("--only", action="append", metavar="CONFIGURATION", help="only these configurations")


def main(args: argparse.Namespace) -> int:
    profile = load(args.profile)
    return report(profile, args.profile, args.depth, args.runs, dry_run=args.dry_run, only=args.only)
