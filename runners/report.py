"""`make report`: run the whole graph, follow it with one progress line, end with the verdict.

Snakemake runs the notebooks; this program only watches the event file they write to, so that a person
sees what is running, how far it is and how long is left.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from runners import campaign, environments, forecasts, model, paths, plan, progress
from runners.errors import EngineUnavailable, UserError
from runners.ports import check_port
from runners.profile import Profile

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
        plan.show(profile, depth, runs)
        return _snakemake(
            profile_argument, depth, runs_argument, only, ["--dry-run", "--quiet", "rules", *force]
        ).wait()
    runs.mkdir(parents=True, exist_ok=True)
    _prepare(profile, only)
    for step in steps:
        # Snakemake runs only the first of several forced steps of a chain; a step without output always runs.
        (paths.ROOT / step).unlink(missing_ok=True)
    forecast = forecasts.write(profile, depth, runs)
    if forecast:
        print(f"{forecast} speed-ups are forecast before anything is measured ({forecasts.FILE})", flush=True)
    clock = campaign.Clock(profile, paths.PUBLISHED_RUNS, runs)
    estimates = campaign.estimate(profile, depth, runs, clock)
    names = only or profile.at_depth(depth)
    expected = sum(estimates[name].total for name in names)
    cells = {
        campaign.label(name, point): clock.cell(name, point)
        for name in names
        for point in campaign.missing(profile, name, depth, runs)
    }
    basis = estimates[names[0]].basis
    print(
        f"{profile.name}, {depth}: {len(cells)} cells to measure, "
        f"about {plan.minutes(expected)} (by {basis}), then the book",
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
            follower = Follower(events, cells, expected)
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
        if campaign.missing(profile, name, depth, runs, round_)
    ]


def _prepare(profile: Profile, only: list[str] | None) -> None:
    """Environments, model and ports first: hours of measuring must not end at a path that was wrong from the start.

    Raises UserError for a missing or wrong file, a port in use, a reference model that cannot be set up, and for an
    engine that was asked for by name. Another engine that cannot be installed only loses its configurations.
    """

    def say(text: str) -> None:
        print(text, flush=True)

    chosen = {n: c for n, c in profile.configurations.items() if (not only or n in only) and c.attach is None}
    for kind in dict.fromkeys(c.engine for c in chosen.values()):
        spec = profile.engines[kind]
        if spec.port is not None:
            check_port(spec.host, spec.port)
        try:
            if spec.environment:
                environments.ensure(spec.environment, say)
        except EngineUnavailable as error:
            if only:
                raise
            say(f"{kind}: its configurations will read «not measured here»: {error}")
    if profile.gates.equal_to_reference_floor is not None:
        environments.ensure("reference", say)
    for drafter in dict.fromkeys(c.drafter for c in chosen.values()):
        model.files(profile, drafter, say)


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


class Follower:
    """Reads the event file as it grows and keeps one line on the terminal up to date.

    cells: label -> seconds it is expected to take; expected_s: all of them with starts and warm-ups.
    """

    def __init__(self, events: Path, cells: dict[str, float], expected_s: float):
        self._handle = open(events)  # noqa: SIM115 - read as long as the report runs
        self._cells, self._beside = cells, max(expected_s - sum(cells.values()), 0.0)
        self._began, self._last_line = time.monotonic(), 0.0
        self._took: dict[str, float] = {}
        self._now = "starting"
        self.spent: Counter[str] = Counter()

    def left(self) -> float:
        """Seconds still to go: what is expected, corrected by how the finished cells compared with it."""
        done = sum(self._cells.get(label, 0.0) for label in self._took)
        total = sum(self._cells.values())
        pace = sum(self._took.values()) / done if len(self._took) >= 3 and done > 0 else 1.0
        return (total - done) * pace + (self._beside * (1 - done / total) if total else 0.0)

    def show(self, last: bool = False) -> None:
        fresh = self._read()
        words = (
            f"[{len(self._took)}/{len(self._cells)} cells · {(time.monotonic() - self._began) / 60:.1f} min · "
            f"about {plan.minutes(max(0.0, self.left()))} left] {self._now}"
        )
        if sys.stdout.isatty():
            print(f"\r\033[K{words[:160]}", end="\n" if last else "", flush=True)
        elif last or (fresh and time.monotonic() - self._last_line > 10):
            self._last_line = time.monotonic()
            print(words, flush=True)

    def _read(self) -> bool:
        """Take in what is new; True when the line has something new to say."""
        fresh = False
        for line in self._handle:
            event = json.loads(line)
            if event["kind"] == "span":
                self.spent[event["what"]] += event["seconds"]
                continue
            fresh = True
            if event["kind"] == "say":
                self._now = event["text"]
                if ": void: " in self._now or "not measured here" in self._now:
                    print(f"\r\033[K  {self._now}" if sys.stdout.isatty() else f"  {self._now}", flush=True)
            elif event["state"] == "ends":
                self._took[event["label"]] = event["seconds"]
            else:
                self._now = event["label"]
        return fresh


def _close(profile: Profile, profile_argument: str, runs: Path, depth: str, wall: float, spent: Counter) -> None:
    """The verdict table, the book's path, the command that serves it, and what the time went on."""
    from runners import book, claims, verdict

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
    print(verdict.markdown(verdict.load(runs, profile.name)))
    print(claims.said(claims.counts(claims.of(runs, profile.name), profile.name)))
    print(f"\nbook:   {book.place(profile.simulated) / '_build' / 'html' / 'index.html'}")
    print(f"serve:  make serve PROFILE={profile_argument}")
