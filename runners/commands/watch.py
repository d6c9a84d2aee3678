"""`specverdict watch URL`: what a server does now, one line an interval, from its /metrics."""

import argparse
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import httpx

from runners.commands import arguments, metrics_url
from runners.commands.read_json import interval_row
from runners.core.errors import UserError
from runners.core.format import number
from runners.readers import texts
from runners.readers.findings import three_figures
from runners.readers.interval import Interval, Snapshot, between
from runners.readers.registry import names
from runners.readers.texts import Text

if TYPE_CHECKING:
    from runners.commands.pays import Pays, StepCost

GAUGE = "spec_accept_length"  # of an engine that exports no counts of drafts


def take(polls: httpx.Client, url: str, engine: str | None) -> Text:
    """The server's counters now. UserError when it does not answer or the answer is no /metrics text."""
    text = texts.read(metrics_url.fetch(polls, url), engine)
    if text.snapshot is None:
        raise UserError(f"{text.name} must answer with a /metrics text, and it is a {text.kind}; give its /metrics.")
    return text


def yields_of(i: Interval) -> float | None:
    """Tokens a decode step in an interval, from counts, else from the engine's own gauge."""
    found = i.figures.tokens_per_step
    return i.counters.gauges.get(GAUGE) if found is None else found


def line_of(i: Interval, pays: Sequence["Pays"] = ()) -> str:
    """One interval in a line."""
    parts = [f"running {number(i.running[1], 0)}, queued {number(i.counters.queued, 0)}"]
    if i.tokens_per_second is not None:
        parts.append(f"{i.tokens_per_second:,.1f} tokens/s")
    f = i.figures
    if f.accept_length is not None:
        accepted = "" if f.draft_acceptance is None else f" ({three_figures(f.draft_acceptance)} of drafts)"
        parts.append(f"accept length {f.accept_length:.2f}{accepted}")
    elif gauge := i.counters.gauges.get(GAUGE):
        parts.append(f"accept length {gauge:.2f} (gauge)")
    elif i.counters.steps is not None:
        parts.append("nothing drafted")
    if f.drafted_share is not None and f.drafted_share < 1 and f.tokens_per_step is not None:
        share = three_figures(f.drafted_share)
        parts.append(f"{f.tokens_per_step:.2f} tokens a step ({share} with a draft)")
    parts += [f"speed-up {p.speed_up:.2f}: {p.answer}" for p in pays]
    return "  ".join(parts)


def watch(args: argparse.Namespace, polls: httpx.Client) -> int:
    """Print a line an interval until `--count` of them or Ctrl-C; returns 0."""
    first = take(polls, args.url, args.engine)
    costs = _costs(args, first.engine)
    before = _snapshot(first)
    if not args.json:
        print(f"{first.engine} at {first.name}, every {args.every:g} s; Ctrl-C ends it", flush=True)
    shown = 0
    while args.count is None or shown < args.count:
        time.sleep(args.every)
        shown += 1
        clock = time.strftime("%H:%M:%S")
        try:
            after = _snapshot(take(polls, args.url, args.engine))
        except UserError as error:  # it may come back
            _say(args, clock, None, str(error))
            continue
        try:
            interval = between(before, after)
            pays = _pays(interval, costs, args.concurrency)
            _say(args, clock, interval, line_of(interval, pays), pays)
        except UserError as error:
            _say(args, clock, None, str(error))
        before = after
    return 0


def _snapshot(text: Text) -> Snapshot:
    assert text.snapshot is not None  # `take` made sure of it
    return text.snapshot


def _costs(args: argparse.Namespace, engine: str) -> list["StepCost"]:
    if args.r is None and args.profile is None:
        return []
    from runners.commands import pays  # it imports pandas, and a line without r needs none

    return pays.asked(args, engine)


def _pays(i: Interval, costs: Sequence["StepCost"], concurrency: float | None) -> list["Pays"]:
    yields = yields_of(i)
    if not costs or yields is None:
        return []
    from runners.commands import pays

    return pays.judged(yields, costs, concurrency or i.mean_running)


def _say(args: argparse.Namespace, clock: str, i: Interval | None, words: str, pays: Sequence["Pays"] = ()) -> None:
    """One line, in words or as JSON."""
    if args.json:
        row = {"time": clock, "note": words if i is None else None, "interval": interval_row(i) if i else None}
        print(json.dumps(row | {"pays": [p.answer for p in pays]}), flush=True)
    else:
        print(f"{clock}  {words}", flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("url", help="a server's address, for example http://localhost:8000")
    parser.add_argument("--every", type=arguments.positive, default=10.0, help="seconds of an interval (10)")
    parser.add_argument("--count", type=arguments.count, help="intervals to show (default: until Ctrl-C)")
    parser.add_argument("--engine", choices=names(), help="whose /metrics it is, if it is not recognised")
    parser.add_argument("--json", action="store_true", help="a line of JSON an interval")
    arguments.add_step_cost(parser)
    metrics_url.add_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Watch until stopped."""
    with metrics_url.client(metrics_url.headers(args)) as polls:
        try:
            return watch(args, polls)
        except KeyboardInterrupt:  # how a person ends it
            return 0
