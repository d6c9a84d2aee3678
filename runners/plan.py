"""The plan of a report: each exact command, its environment, the cells and the time they take."""

import shlex
from pathlib import Path

from runners import campaign, model, multiplicity, paths, provenance, tables
from runners.engines import command
from runners.profile import Profile


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def show(profile: Profile, depth: str | None, runs: Path) -> int:
    """Print the plan; nothing is started, made or looked up beyond this checkout."""
    depth = depth or profile.workload.default_depth
    chosen = profile.depth(depth)
    clock = campaign.Clock(profile, paths.PUBLISHED_RUNS, runs)
    estimates = campaign.estimate(profile, depth, runs, clock)
    print(f"profile {profile.name}: {profile.title}")
    print(
        f"depth {depth}: {chosen.rounds} server start(s) of each configuration, repeats by concurrency {chosen.repeats}"
    )
    gib = profile.target.bytes_on_disk / 1e9
    print(f"target {profile.target.name}, {profile.target.precision}, {gib:,.1f} GB on disk\n")
    measured = profile.at_depth(depth)
    for name, c in profile.configurations.items():
        port = profile.engines[c.engine].port or 0
        line = command(profile, name, model.planned_files(profile, c.drafter), port)
        if name not in measured:
            print(f"[{name}] {c.title}\n  depth {depth} leaves it out; name it with --only, or take a deeper one\n")
            continue
        todo = campaign.missing(profile, name, depth, runs)
        every = campaign.points(profile, depth, name)
        print(f"[{name}] {c.title}")
        if c.note:
            print(f"  note         {c.note}")
        if c.attach:
            print(f"  attach       {c.attach.url} (not started, not stopped by us)")
        else:
            added = " ".join(f"{k}={shlex.quote(v)}" for k, v in provenance.masked(line.env).items())
            print(f"  environment  {added or '(nothing added)'}")
            print(f"  command      {shlex.join(provenance.masked_argv(line.argv))}")
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
    earlier = tables.cells(runs, profile.name)
    if earlier.empty:
        earlier = tables.cells("published", profile.name)
    if len(earlier):
        print("\nrepeats needed, by the spread of earlier runs:")
        for text in multiplicity.plan_lines(earlier, profile.practical_margin):
            print(f"  {text}")
    return 0
