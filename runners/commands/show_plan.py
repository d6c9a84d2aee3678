"""`specverdict plan`: each exact command of a report, its environment, its cells and the time they take."""

import argparse
import shlex
from pathlib import Path

from runners.analyse import multiple_comparisons, results
from runners.commands import arguments
from runners.core import paths, redact
from runners.core.format import minutes
from runners.measure import cell_key, estimate
from runners.profiles import points
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.serve import model_files
from runners.serve.command import command


def show(profile: Profile, preset: str | None, runs: Path) -> int:
    """Print the plan; nothing is started, made or looked up beyond this checkout."""
    preset = preset or profile.workload.default_preset
    estimates = estimate.estimate(profile, preset, runs, estimate.Clock(profile, paths.PUBLISHED_RUNS, runs))
    _print_head(profile, preset)
    measured = profile.at_preset(preset)
    for name in profile.configurations:
        if name in measured:
            _print_configuration(profile, name, preset, runs, estimates[name])
        else:
            print(f"[{name}] {profile.configurations[name].title}")
            print(f"  not measured at preset {preset}; name it with --only, or take another --preset\n")
    _print_totals(profile, [estimates[name] for name in measured])
    _print_repeats(profile, runs)
    return 0


def _print_head(profile: Profile, preset: str) -> None:
    """The profile, how much is measured, and the target."""
    chosen, target = profile.preset(preset), profile.target
    print(f"profile {profile.name}: {profile.title}")
    starts = f"{chosen.rounds} server start(s) of each configuration"
    print(f"preset {preset}: {starts}, repeats by concurrency {chosen.repeats}")
    print(f"target {target.name}, {target.precision}, {target.bytes_on_disk / 1e9:,.1f} GB on disk\n")


def _print_configuration(profile: Profile, name: str, preset: str, runs: Path, spent: estimate.Estimate) -> None:
    """One configuration: its command line with secrets masked, its cap, and what is left to measure."""
    c = profile.configurations[name]
    print(f"[{name}] {c.title}")
    if c.note:
        print(f"  note         {c.note}")
    if c.attach:
        print(f"  attach       {c.attach.url} (not started, not stopped by us)")
    else:
        port = profile.engines[c.engine].port or 0
        line = command(profile, name, model_files.planned_files(profile, c.drafter), port)
        added = " ".join(f"{k}={shlex.quote(v)}" for k, v in redact.masked(line.env).items())
        print(f"  environment  {added or '(nothing added)'}")
        print(f"  command      {shlex.join(redact.masked_argv(line.argv))}")
    print(f"  cap          {c.max_running_requests} running requests")
    capped = [level for level in profile.workload.concurrencies if level > c.max_running_requests]
    if capped:
        print(f"  capped       C={capped} will be marked as capped at {c.max_running_requests}")
    missing = cell_key.missing(profile, name, preset, runs)
    every = points.points(profile, preset, name)
    print(f"  cells        {len(missing)} of {len(every)} to measure, about {minutes(spent.total)} ({spent.basis})\n")


def _print_totals(profile: Profile, estimates: list[estimate.Estimate]) -> None:
    """The workload, and the time of all configurations together."""
    workload = profile.workload
    print(f"prompt sets {', '.join(workload.prompt_sets)}; concurrencies {workload.concurrencies}; "
          f"{workload.output_tokens} output tokens a request, end of text ignored; "
          f"temperature {workload.temperature:g}")  # fmt: skip
    total, starts = sum(e.total for e in estimates), sum(e.starts for e in estimates)
    print(
        f"in all about {minutes(total)}, of which {minutes(starts)} are server starts; port 0 stands for any free port"
    )


def _print_repeats(profile: Profile, runs: Path) -> None:
    """How many repeats the profile's margin needs, by the spread of earlier runs: these, else the published ones."""
    earlier = results.cells(runs, profile.name)
    if earlier.empty:
        earlier = results.cells("published", profile.name)
    if earlier.empty:
        return
    print("\nrepeats needed, by the spread of earlier runs:")
    for text in multiple_comparisons.plan_lines(earlier, profile.practical_margin):
        print(f"  {text}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_preset(parser)
    arguments.add_runs(parser, "local")


def main(args: argparse.Namespace) -> int:
    """Print the plan."""
    return show(load(args.profile), args.preset, paths.runs_root(args.runs))
