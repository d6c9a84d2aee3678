"""`specverdict ask`: two servers that run already, one with speculation: does it pay?

It makes a profile of the two, and the report's own campaign and inference answer from it.
"""

import argparse
import json
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from runners.analyse import ask_answers, looks
from runners.commands import arguments, ask_look, ask_words
from runners.core import json_text, paths, progress
from runners.core.errors import UserError
from runners.core.files import write_atomic
from runners.core.format import NOT_MEASURED, minutes
from runners.engines.registry import engine
from runners.measure import campaign
from runners.measure.campaign_run import Open
from runners.profiles import prompts, whole_command
from runners.profiles.load import load
from runners.profiles.profile import NAME, Profile
from runners.profiles.two_servers import BASE, SPEC, Question, content

TOKENS = 128  # of an answer


def ask(args: argparse.Namespace) -> int:
    """Find both servers, measure them in turn and print the answers; 1 when no load could be measured."""
    began = time.monotonic()
    found = ask_look.look(args)
    for note in found.notes:
        progress.say(note)
    question = Question(
        engine=found.base.identity.engine,
        version=found.version,
        target=found.target,
        prompt_sets=[_prompt_set(entry) for entry in args.prompts or prompts.available()],
        concurrencies=args.concurrency,
        output_tokens=args.output_tokens,
        ends="natural" if args.natural_ends else found.ends,
        temperature=found.temperature,
        body=found.body,
        tokens_per_second=found.tokens_per_second,
        seconds=args.minutes * 60,
        at_once=1 if args.one_at_a_time else 2,
        start_seconds=found.start_seconds,
    )
    title = f"does speculation pay? {engine(question.engine).title}, {question.target}"
    with _place(args.keep) as (file, runs):
        text = yaml.safe_dump(content(title, found.base.side, found.spec.side, question), sort_keys=False)
        write_atomic(file, text.encode(), hide=False)  # what is measured must be asked with its own headers
        try:
            profile = load(str(file))
        except UserError:
            file.unlink()
            raise
        # Looking at the two is part of the minutes, but for the starts that it takes.
        stopped = _measure(profile, runs, args.minutes * 60 + found.start_seconds - (time.monotonic() - began))
        answers = ask_answers.answers(runs, profile, BASE, SPEC)
    spent = time.monotonic() - began
    if args.json:
        told = ask_words.as_json(answers, found, spent / 60)
        print(json.dumps(told, indent=1, allow_nan=False))
    else:
        print("\n".join(ask_words.lines(answers, found.started)))
    if stopped:
        progress.say("stopped; these are the answers by what was measured until then")
    if args.keep:
        progress.say(f"kept as profile {args.keep}: `make report PROFILE={args.keep}` builds the book from it")
    progress.say(f"asked for {minutes(spent)}")
    return int(all(one.pays == NOT_MEASURED for one in answers))


def _measure(profile: Profile, runs: Path, seconds: float) -> bool:
    """The campaign; True when a person stopped it."""

    def judge() -> tuple[list[Open], int]:
        found, total = looks.for_campaign(runs, profile, [BASE, SPEC])
        # The minutes are there to be used: an open point is measured on even where no end is in sight.
        return [replace(one, starts=one.starts or 1) for one in found], total

    try:
        campaign.run(profile, None, runs, judge, seconds=max(seconds, 1.0))
    except KeyboardInterrupt:
        return True
    return False


@contextmanager
def _place(keep: str | None) -> Iterator[tuple[Path, Path]]:
    """(the profile's file, the folder of its runs): a temporary one, or where a report finds them."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="specverdict-ask-") as folder:
            yield Path(folder) / "ask.yaml", Path(folder) / "runs"
        return
    if not re.fullmatch(NAME, keep):
        raise UserError(f"--keep {keep}: a name must hold letters, digits, dots, dashes and underscores only.")
    file = paths.PROFILES / f"{keep}.yaml"
    if file.exists() or (paths.LOCAL_RUNS / keep).exists():
        raise UserError(f"--keep {keep}: a profile or runs of that name are here already; choose another name.")
    yield file, paths.LOCAL_RUNS


def _prompt_set(entry: str) -> str:
    """A shipped set by its name; anything else as the whole path of a file."""
    if entry.partition("@")[0] in prompts.available():
        return entry
    return str(Path(entry).expanduser().absolute())


def _concurrencies(text: str) -> list[int]:
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise argparse.ArgumentTypeError("must be whole numbers >= 1, separated by commas, such as 1,4,16")
    return found


def _fields(text: str) -> dict[str, Any]:
    try:
        found = json_text.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError('must be a JSON object such as {"top_p": 0.9}')
    return found


def _command(text: str) -> str:
    try:
        return whole_command.can_be_started(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError('must be "Name: value"; ${VARIABLE} in the value is read from the environment')
    return name.strip(), value.strip()


def _tokens(text: str) -> int:
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError("must be a whole number >= 2")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    for side, what in ((BASE, "without"), (SPEC, "with")):
        parser.add_argument(f"--{side}", metavar="URL", help=f"the server {what} speculation, where it runs already")
        parser.add_argument(
            f"--{side}-command", type=_command, metavar="CMD", help="or the command that starts it, {port} in it"
        )
    parser.add_argument("--one-at-a-time", action="store_true", help="start one, then the other: both do not fit")
    parser.add_argument(
        "--prompts", action="append", metavar="FILE", help="a file, or a shipped set; may be repeated (all sets)"
    )
    parser.add_argument(
        "-C", "--concurrency", type=_concurrencies, default=[1, 4, 16], help="requests in flight (default: 1,4,16)"
    )
    arguments.add_minutes(parser, 10)
    parser.add_argument("--output-tokens", type=_tokens, default=TOKENS, help=f"of each answer (default: {TOKENS})")
    parser.add_argument("--natural-ends", action="store_true", help="let an answer end by itself before that")
    parser.add_argument("--api-key-env", metavar="NAME", help="the environment variable that holds the servers' key")
    parser.add_argument(
        "--header", type=_header, action="append", default=[], help='"Name: value" of each request; may be repeated'
    )
    parser.add_argument("--body", type=_fields, default={}, metavar="JSON", help="further fields of each request")
    for side in (BASE, SPEC):
        parser.add_argument(f"--{side}-body", type=_fields, default={}, metavar="JSON", help=f"of {side}'s alone")
    parser.add_argument("--model", help="the model to ask for, where a server has several")
    parser.add_argument("--engine", help="the servers' engine, where it is not recognised")
    parser.add_argument("--keep", metavar="NAME", help="keep profile and runs under this name, for a whole report")
    parser.add_argument("--json", action="store_true", help="print the answers as JSON")


def main(args: argparse.Namespace) -> int:
    """Ask; its exit code."""
    return ask(args)
