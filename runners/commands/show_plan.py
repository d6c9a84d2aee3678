"""The plan of a report: each exact command, its environment, the cells and the time they take."""

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


def show(profile: Profile, depth: str | None, runs: Path) -> int:
    """Print the plan; nothing is started, made or looked up beyond this checkout."""
    depth = depth or profile.workload.default_depth
    chosen = profile.depth(depth)
    clock = estimate.Clock(profile, paths.PUBLISHED_RUNS, runs)
    estimates = estimate.estimate(profile, depth, runs, clock)
    print(f"profile {profile.name}: {profile.title}")
    print(
        f"depth {depth}: {chosen.rounds} server start(s) of each configuration, repeats by concurrency {chosen.repeats}"
    )
    gib = profile.target.bytes_on_disk / 1e9
    print(f"target {profile.target.name}, {profile.target.precision}, {gib:,.1f} GB on disk\n")
    measured = profile.at_depth(depth)
    for name, c in profile.configurations.items():
        port = profile.engines[c.engine].port or 0
        line = command(profile, name, model_files.planned_files(profile, c.drafter), port)
        if name not in measured:
            print(f"[{name}] {c.title}\n  depth {depth} leaves it out; name it with --only, or take a deeper one\n")
            continue
        todo = cell_key.missing(profile, name, depth, runs)
        every = points.points(profile, depth, name)
        print(f"[{name}] {c.title}")
        if c.note:
            print(f"  note         {c.note}")
        if c.attach:
            print(f"  attach       {c.attach.url} (not started, not stopped by us)")
        else:
            added = " ".join(f"{k}={shlex.quote(v)}" for k, v in redact.masked(line.env).items())
            print(f"  environment  {added or '(nothing added)'}")
            print(f"  command      {shlex.join(redact.masked_argv(line.argv))}")
        print(f"  cap          {c.max_running_requests} running requests")
        capped = [c_ for c_ in profile.workload.concurrencies if c_ > c.max_running_requests]
        if capped:
            print(f"  capped       C={capped} will be marked as capped at {c.max_running_requests}")
        spent = estimates[name]
        print(f"  cells        {len(todo)} of {len(every)} to measure, about {minutes(spent.total)} ({spent.basis})\n")
    total = sum(estimates[name].total for name in measured)
    starts = sum(estimates[name].starts for name in measured)
    print(f"prompt sets {', '.join(profile.workload.prompt_sets)}; concurrencies {profile.workload.concurrencies}; "
          f"{profile.workload.output_tokens} output tokens a request, end of text ignored; "
          f"temperature {profile.workload.temperature:g}")  # fmt: skip
    print(
        f"in all about {minutes(total)}, of which {minutes(starts)} are server starts; port 0 stands for any free port"
    )
    earlier = results.cells(runs, profile.name)
    if earlier.empty:
        earlier = results.cells("published", profile.name)
    if len(earlier):
        print("\nrepeats needed, by the spread of earlier runs:")
        for text in multiple_comparisons.plan_lines(earlier, profile.practical_margin):
            print(f"  {text}")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    arguments.add_depth(parser)
    arguments.add_runs(parser, "local")


def main(args: argparse.Namespace) -> int:
    return show(load(args.profile), args.depth, paths.runs_root(args.runs))
