"""`specverdict read FILE`: what an existing log, /metrics text or /server_info shows.

Engine and generation, load phases with times, acceptance by the engine's own definition and recomputed, running and
queued requests, the outcome, the first real cause, and what to try.
"""

import argparse
import dataclasses
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

from runners.core.acceptance_math import accept_length
from runners.core.errors import UserError
from runners.readers.log_lines import SAMPLE
from runners.readers.read_text import read_text
from runners.readers.records import Counters, LogReading
from runners.readers.registry import all_readers, names, reader

SHOWN = 8  # acceptance lines printed; --json has them all
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_METRIC = re.compile(r"^(\w+):\w+(?:\{[^}]*\})? [-+0-9.eNaIn]+$")


def lines_of(path: Path) -> Iterator[str]:
    """The file's lines without terminal colours; UserError when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            for line in handle:
                yield _COLOUR.sub("", line) if "\x1b" in line else line
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); give a log or a saved /metrics text.") from error


def metrics_engine(path: Path) -> str | None:
    """The engine whose /metrics text this is; None for a log."""
    for line in itertools.islice(lines_of(path), SAMPLE):
        if (found := _METRIC.match(line.strip())) and found[1] in all_readers():
            return found[1]
    return None


def log_of(path: Path, engine: str | None, num_draft_tokens: int | None) -> LogReading:
    """The reading of a log or an excerpt of one; UserError when nobody's lines are in it."""
    reading = read_text(lines_of(path), engine, num_draft_tokens)
    if reading is None:
        raise UserError(
            f"{path} was not recognised as a log of {', '.join(names())}: no line is of a form that one of them "
            "writes. If it is one, name the engine with --engine."
        )
    return reading


def server_info(path: Path, engine: str | None = None) -> dict | None:
    """A saved /server_info, read by an engine's `read_server_info` (SGLang's); None for anything else."""
    readers = [r for n, r in all_readers().items() if engine in (None, n) and hasattr(r, "read_server_info")]
    if not next(lines_of(path), "").lstrip().startswith("{"):
        return None
    try:
        found = json.loads("".join(lines_of(path)))
        return readers[0].read_server_info(found) if readers and "internal_states" in found else None
    except (ValueError, TypeError):
        return None  # a log whose first line begins with a brace, or another program's answer


def read(path: Path, engine: str | None = None, num_draft_tokens: int | None = None) -> LogReading | Counters | dict:
    """The reading of a log, the counters of a /metrics text, or the fields of a /server_info.

    engine: whose file it is, else it is recognised by its content. UserError when it is not.
    """
    if not path.is_file():
        raise UserError(f"There is no file {path}; give a log, a saved /metrics text or a saved /server_info.")
    if info := server_info(path, engine):
        return info
    kind = metrics_engine(path)
    if kind and engine in (None, kind):
        return reader(kind).read_counters("".join(lines_of(path)))
    return log_of(path, engine, num_draft_tokens)


def show(file: str, engine: str | None, as_json: bool, num_draft_tokens: int | None) -> int:
    """Print the reading, in words or as JSON."""
    found = read(Path(file), engine, num_draft_tokens)
    if as_json:
        print(json.dumps(found if isinstance(found, dict) else dataclasses.asdict(found), indent=1))
    elif isinstance(found, dict):
        print("\n".join(info_words(found)))
    elif isinstance(found, Counters):
        print("\n".join(metrics_words(found)))
    else:
        print("\n".join(log_words(found)))
    return 0


def metrics_words(c: Counters) -> list[str]:
    """A /metrics text in words. Its counters hold all requests since the server's start, warm-up included."""
    words = [f"source      {c.source}"]
    words.append(f"requests    running {_number(c.running)}, queued {_number(c.queued)}")
    words.append(f"counts      steps {_number(c.steps)}, drafted {_number(c.drafted)}, accepted {_number(c.accepted)}")
    if c.steps and c.accepted is not None:
        words.append(f"recomputed  accept length {accept_length(c.steps, c.accepted):.3f} since the server's start")
        if c.drafted:
            words.append(f"            draft acceptance {c.accepted / c.drafted:.1%}, the bonus token not counted")
        if c.accepted_per_position:
            survival = ", ".join(f"{n / c.steps:.3f}" for n in c.accepted_per_position)
            words.append(f"            survival by position {survival}")
    words += [f"gauge       {name} {value:g} (of the last interval)" for name, value in c.gauges.items()]
    return words


def info_words(info: dict) -> list[str]:
    """`sglang.read_server_info` in words: the cap that was really in force, and the accept length since the start."""
    words = [f"source      sglang /server_info, version {info['version'] or '-'}"]
    caps = info["effective_max_running_requests"], info["effective_max_running_requests_per_dp"]
    words.append(f"cap         {_number(caps[0])} running requests, {_number(caps[1])} of each data-parallel rank")
    length, tokens = info["avg_spec_accept_length"], info["num_draft_tokens"]
    if length is not None:
        words.append(f"acceptance  accept length {length:.3f} since the server's start, the bonus token counted in")
        if tokens and tokens > 1:
            share = (length - 1) / (tokens - 1)
            words.append(f"recomputed  draft acceptance {share:.1%} of a chain's {tokens - 1} drafts")
    return words


def log_words(r: LogReading) -> list[str]:
    """A log in words: phases, acceptance, load and outcome."""
    words = [", ".join(filter(None, (f"engine      {r.engine}", r.engine_certainty, r.generation)))]
    for p in r.phases:
        took = f", {p.seconds:g} s" if p.seconds is not None else ""
        words.append(f"phase       {p.name}" + (f" at {p.at}" if p.at else "") + took)
    words += _acceptance_words(r)
    if r.running_max is not None:
        words.append(f"requests    {r.running_max} running at most")
    words.append(f"outcome     {r.outcome}")
    if r.no_progress_since:
        words.append(f"stall       no progress since {r.no_progress_since}: waits for {r.waits_for}")
    if r.cause:
        words.append(f"cause       {r.cause} [{r.cause_kind}]")
    if r.advice:
        words.append(f"try         {r.advice}")
    words.append(f"lines       {r.lines:,}, of which {r.unknown_lines:,} are in no form that this reader knows")
    return words


def _acceptance_words(r: LogReading) -> list[str]:
    """The last acceptance lines as printed and recomputed, and all of them pooled (a ratio of sums)."""
    words = []
    drafted = [a for a in r.acceptance if not a.idle]
    for a in drafted[-SHOWN:]:
        parts = [f"accept length {a.accept_length:.2f}" if a.accept_length is not None else "accept length -"]
        if a.printed_rate is not None:
            parts.append(f"rate {a.printed_rate:.2f} as printed ({a.definition})")
        if a.recomputed_rate is not None:
            parts.append(f"{a.recomputed_rate:.2f} recomputed (accepted / drafted)")
        if a.running is not None:
            parts.append(f"{a.running} running, {_number(a.queued)} queued")
        words.append("acceptance  " + "; ".join(parts))
    if len(drafted) > SHOWN:
        words.append(f"            the last {SHOWN} of {len(drafted)} lines; --json has all")
    counted = [(a.drafted, a.accepted) for a in drafted if a.drafted and a.accepted is not None]
    if counted:
        tokens = sum(drafts for drafts, _ in counted)
        share = sum(accepted for _, accepted in counted) / tokens
        words.append(f"pooled      draft acceptance {share:.1%} of {tokens:,} drafted tokens")
    return words


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("file", help="a log, a saved /metrics text or a saved /server_info")
    parser.add_argument("--engine", choices=names(), help="whose file it is, if it is not recognised")
    parser.add_argument("--json", action="store_true", help="the whole reading as JSON")
    parser.add_argument("--num-draft-tokens", type=int, help="SGLang's setting, if the log does not show it")


def main(args: argparse.Namespace) -> int:
    """Print what the file shows."""
    return show(args.file, args.engine, args.json, args.num_draft_tokens)
