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
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runners.analyse import forecasts
from runners.analyse.verdict import store
from runners.claims import check
from runners.commands import arguments, show_plan
from runners.commands.prepare import prepare_report
from runners.commands.progress_line import ProgressLine
from runners.core import files, format, paths, progress
from runners.core.errors import UserError
from runners.measure import campaign_record, estimate
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.report import book
from runners.report.chapters import claims as claims_chapter
from runners.report.chapters.verdict import summary

AFTER_S = 75.0  # of analysis and book, before they were timed here
LEAST_S = 60.0  # a budget that installing has used up still measures something
# What an engine spends loading and answering; the rest of a report is our own.
ENGINE_WORK = ("start", "cell")
# Each signal to Snakemake's group and how long to wait for it to end before the next one (None: as long as it takes).
STOP_SIGNALS = ((signal.SIGINT, 20), (signal.SIGTERM, 10), (signal.SIGKILL, None))
ERROR_LINE = re.compile(r"([\w.]*(?:Error|Exception|Unavailable)|error): (.+)")
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
    minutes: float | None = None  # what the whole may take; None: the preset's
    more: bool = False  # another campaign beside a finished one

    @property
    def runs(self) -> Path:
        """The folder that the runs are written to."""
        return paths.runs_root(self.runs_argument)

    @property
    def folder(self) -> Path:
        """The profile's part of it."""
        return self.runs / self.profile.name

    @property
    def configurations(self) -> list[str]:
        """The configurations that are measured, in the profile's order or in that of `--only`."""
        return self.only or self.profile.at_preset(self.preset)

    def budget_s(self, since: float) -> float | None:
        """Seconds that measuring may take, of a report that began at `since` (time.monotonic); None: no limit."""
        minutes = self.minutes or self.profile.preset(self.preset).minutes
        if minutes is None:
            return None
        return max(minutes * 60 - (time.monotonic() - since) - after_s(self), LEAST_S)


def after_s(run: ReportRun) -> float:
    """Seconds that analysis and book took last time, here or in the published run; AFTER_S where that is unknown."""
    for root in (run.runs, paths.PUBLISHED_RUNS):
        path = root / run.profile.name / f"report-{run.preset}.json"
        if path.is_file() and (known := files.read_json(path, dict, "delete it").get("after_s")):
            return float(known)
    return AFTER_S


def report(run: ReportRun, dry_run: bool = False) -> int:
    """Returns the exit code; UserError for bad input, before anything is started."""
    began = time.monotonic()
    for name in run.only or []:
        run.profile.configuration(name)
    force = ["--forcerun", "analyse", *(["measure"] if _to_measure(run) else [])]
    if dry_run:
        show_plan.show(run.profile, run.preset, run.runs)
        return _snakemake(run, ["--dry-run", "--quiet", "rules", *force], None).wait()
    run.runs.mkdir(parents=True, exist_ok=True)
    prepare_report(run.profile, run.preset, run.only)
    forecast = forecasts.write(run.profile, run.preset, run.runs)
    if forecast:
        print(f"{forecast} speed-ups are forecast before anything is measured ({forecasts.FILE})", flush=True)
    # Engines and models are fetched once per machine: the minutes are for what is done each time.
    seconds = run.budget_s(time.monotonic())
    expected_s = _announce(run, seconds)
    wall_s, line = _execute(run, ["--quiet", "rules", "progress", *force], seconds, expected_s)
    _write_timing(run, wall_s, line)
    _print_result(run)
    print(f"\n{(time.monotonic() - began) / 60:.1f} min in all")
    return 0


def _to_measure(run: ReportRun) -> bool:
    """Is there a campaign to begin or to go on with?"""
    preset = run.profile.preset(run.preset)
    known = campaign_record.current(run.folder, run.preset, preset.rounds, None, run.more, run.configurations)
    return not known[-1].is_over(run.configurations)


def _announce(run: ReportRun, seconds: float | None) -> float:
    """Print what is measured and how long it takes; seconds of measuring that are expected."""
    if not _to_measure(run):
        print(
            f"{run.profile.name}, {run.preset}: the campaign is finished; analysis and book are made again", flush=True
        )
        return 0.0
    clock = estimate.Clock(run.profile, run.preset, paths.PUBLISHED_RUNS, run.runs)
    first = estimate.first_pass(run.profile, run.configurations, clock)
    total = sum(e.total for e in first.values())
    limit = "" if seconds is None else f"; measuring ends after {format.minutes(seconds)} at the latest"
    print(
        f"{run.profile.name}, {run.preset}: {len(first)} comparisons, a first pass of about {format.minutes(total)} "
        f"(by {clock.basis()}), then what is still open{limit}",
        flush=True,
    )
    return total if seconds is None else min(total, seconds)


def _execute(
    run: ReportRun, options: list[str], seconds: float | None, expected_s: float
) -> tuple[float, ProgressLine]:
    """Run the graph and follow it; (seconds, what was seen). UserError with the reason when it fails."""
    events, log = paths.BUILD / "events.jsonl", paths.BUILD / "report.log"
    events.parent.mkdir(parents=True, exist_ok=True)
    events.write_text("")
    os.environ[progress.VARIABLE] = str(events)  # the notebooks' kernels inherit it
    began = time.monotonic()
    with open(log, "w") as out:
        child = _snakemake(run, options, seconds, out)
        try:
            line = ProgressLine(events, expected_s, after_s(run))
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
    return time.monotonic() - began, line


def _snakemake(
    run: ReportRun, options: list[str], seconds: float | None, out: IO[str] | None = None
) -> "subprocess.Popen[bytes]":
    """Start Snakemake in a process group of its own, so that Ctrl-C reaches us and we end the group in order."""
    config = {
        "profile": run.profile_argument,
        "preset": run.preset,
        "runs": run.runs_argument,
        "only": ",".join(run.only or []),
        "seconds": f"{seconds or 0:.0f}",
        "more": "yes" if run.more else "",
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
            return found[2][:400] if found[1].endswith(("error", "UserError", "EngineUnavailable")) else line[:400]
    return lines[-1][:400] if lines else "Snakemake printed nothing"


def _write_timing(run: ReportRun, wall_s: float, line: ProgressLine) -> None:
    """Print and keep what the time was spent on: the engines, and the report's own overhead."""
    spent = line.spent
    engine_s = sum(spent[kind] for kind in ENGINE_WORK)
    own_s = wall_s - engine_s
    share = own_s / wall_s if wall_s else 0
    after = time.monotonic() - line.ended_at if line.ended_at is not None else wall_s
    print(
        f"\nmeasuring, analysis and book {wall_s / 60:.1f} min; engines loading and answering {engine_s:.0f} s; "
        f"our own overhead {own_s:.0f} s ({share:.0%}); analysis and book {after:.0f} s"
    )
    print("  " + " · ".join(f"{kind} {seconds:.0f} s" for kind, seconds in sorted(spent.items())))
    timing = {
        "wall_s": wall_s,
        "engine_s": engine_s,
        "own_s": own_s,
        "own_share": share,
        "after_s": after,
        "preset": run.preset,
        "spans_s": dict(spent),
    }
    files.write_text(run.folder / f"report-{run.preset}.json", json.dumps(timing, indent=1) + "\n")


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
    arguments.add_minutes(parser)
    arguments.add_more(parser)
    parser.add_argument("--dry-run", action="store_true", help="print commands, environment and plan; start nothing")
    parser.add_argument("--only", action="append", metavar="CONFIGURATION", help="only this one; may be repeated")


def main(args: argparse.Namespace) -> int:
    """Run the report; its exit code."""
    profile = load(args.profile)
    preset = args.preset or profile.workload.default_preset
    profile.preset(preset)
    run = ReportRun(profile, args.profile, preset, args.runs, args.only, args.minutes, args.more)
    return report(run, args.dry_run)
