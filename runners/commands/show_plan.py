"""`specverdict plan`: each exact command of a report, its environment, its starts and the time they take."""

import argparse
import shlex
from pathlib import Path

from runners.analyse import looks
from runners.commands import arguments
from runners.core import paths, redact
from runners.core.errors import UserError
from runners.core.format import minutes
from runners.measure import estimate, open_loop
from runners.profiles import points
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.serve.planned_start import PlannedStart, planned_start


def show(profile: Profile, preset: str | None, runs: Path) -> int:
    """Print the plan; nothing is started, made or looked up beyond this checkout."""
    preset = preset or profile.workload.default_preset
    clock = estimate.Clock(profile, preset, paths.PUBLISHED_RUNS, runs)
    _print_head(profile, preset)
    measured = profile.at_preset(preset)
    for name in profile.configurations:
        if name in measured:
            _print_configuration(profile, name, preset, clock)
        else:
            print(f"[{name}] {profile.configurations[name].title}")
            print(f"  not measured at preset {preset}; name it with --only, or take another --preset\n")
    _print_totals(profile, preset, estimate.first_pass(profile, measured, clock), clock)
    if open_s := open_loop.expected_seconds(profile, preset, measured, clock):
        once = ", in the first campaign only" if profile.workload.open_loop and profile.workload.open_loop.once else ""
        print(f"after that the open loops, about {minutes(open_s)} more{once}")
    for text in looks.plan_lines(runs, profile, preset, clock):
        print(text)
    return 0


def _print_head(profile: Profile, preset: str) -> None:
    """The profile, how much is measured, and the target."""
    chosen, target = profile.preset(preset), profile.target
    print(f"profile {profile.name}: {profile.title}")
    print(
        f"preset {preset}: at most {chosen.rounds} start(s) of each comparison, blocks of a start by concurrency "
        f"{chosen.repeats}, answers of a window {chosen.requests}"
    )
    size = f", {target.bytes_on_disk / 1e9:,.1f} GB on disk" if target.bytes_on_disk else ""
    print(f"target {target.name}, {target.precision}{size}\n")


def _print_configuration(profile: Profile, name: str, preset: str, clock: estimate.Clock) -> None:
    """One configuration: its command line with secrets masked, its cap, and what one start of it measures."""
    c = profile.configurations[name]
    print(f"[{name}] {c.title}")
    if c.note:
        print(f"  note         {c.note}")
    if c.attach:
        print(f"  attach       {c.attach.url} (not started, not stopped by us)")
    else:
        _print_command(planned_start(profile, name))
    print(f"  cap          {c.max_running_requests} running requests")
    capped = [level for level in profile.workload.concurrencies if level > c.max_running_requests]
    if capped:
        print(f"  capped       C={capped} will be marked as capped at {c.max_running_requests}")
    found = points.loads(profile, points.Comparison(name))
    spent = clock.visit([name], found)
    blocks = sum(profile.preset(preset).repeats[load.concurrency] for load in found)
    print(
        f"  one start    {len(found)} points, {blocks} blocks, about {minutes(spent.total)}, of which "
        f"{minutes(spent.starts)} until it answers (by {clock.basis()})\n"
    )


def _print_command(start: PlannedStart) -> None:
    """Environment and command line, or why there is none: the engine cannot serve these files."""
    try:
        line = start.command()
    except UserError as error:
        print(f"  no command   {error}")
        return
    added = " ".join(f"{k}={shlex.quote(v)}" for k, v in redact.masked(line.env).items())
    print(f"  environment  {added or '(nothing added)'}")
    print(f"  command      {shlex.join(redact.masked_argv(line.argv))}")


def _print_totals(
    profile: Profile, preset: str, first: dict[points.Comparison, estimate.Estimate], clock: estimate.Clock
) -> None:
    """The workload, and what the first pass and every further start take."""
    workload, chosen = profile.workload, profile.preset(preset)
    print(f"prompt sets {', '.join(workload.prompt_sets)}; concurrencies {workload.concurrencies}; "
          f"{profile.output_tokens(preset)} output tokens a request, end of text ignored; "
          f"temperature {workload.temperature:g}")  # fmt: skip
    total, starts = sum(e.total for e in first.values()), sum(e.starts for e in first.values())
    how = (
        "base and one other are alive at once, and ratios are made within seconds"
        if profile.hardware.servers_at_once > 1
        else "one server fits at a time: a ratio takes a start of each side, and one start alone decides nothing"
    )
    more = chosen.rounds - 1
    then = f"then up to {more} more starts of what is still open, up to {minutes(total * more)} more; " if more else ""
    limit = f"at most {chosen.minutes:g} min in all" if chosen.minutes else "no limit of time"
    print(
        f"{how}\nfirst pass about {minutes(total)}, of which {minutes(starts)} are server starts; {then}"
        f"{limit}; port 0 stands for any free port"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    arguments.add_profile(parser)
    arguments.add_preset(parser)
    arguments.add_runs(parser, "local")


def main(args: argparse.Namespace) -> int:
    """Print the plan."""
    return show(load(args.profile), args.preset, paths.runs_root(args.runs))
