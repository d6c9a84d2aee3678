"""`specverdict read WHAT...`: what logs, /metrics texts and a /server_info say, each by itself and together.

WHAT is a file (also compressed), a folder, `-` for standard input or the address of a server's /metrics. Two snapshots
of one server are subtracted. It ends with one sentence to act on.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runners.commands import arguments, metrics_url
from runners.commands.read_answer import together_words
from runners.commands.read_json import SCHEMA, document
from runners.commands.read_words import interval_words, text_words
from runners.core.errors import UserError
from runners.readers import sources, texts
from runners.readers.records import Counters, LogReading
from runners.readers.registry import names
from runners.readers.sources import Source
from runners.readers.texts import Text
from runners.readers.together import Together, by_server

if TYPE_CHECKING:
    from runners.commands.pays import Pays


def read(path: Path, engine: str | None = None, num_draft_tokens: int | None = None) -> LogReading | Counters | dict:
    """The reading of a log, the counters of a /metrics text, or the fields of a /server_info.

    engine: whose file it is, else it is recognised by its content. UserError when it is not.
    """
    (source,) = sources.of(str(path))
    return texts.read(source, engine, num_draft_tokens).content


def read_all(args: argparse.Namespace) -> tuple[list[Text], list[str]]:
    """(the texts, the files of folders that are none). UserError where what was named is no text of an engine."""
    found: list[Text] = []
    not_read: list[str] = []
    for what in args.what:
        if metrics_url.is_url(what):
            found.append(texts.read(metrics_url.source(what, metrics_url.headers(args)), args.engine))
            continue
        of_folder = Path(what).is_dir()
        before = len(found)
        for source in sources.of(what):
            found += _read_one(source, args, not_read if of_folder else None)
        if len(found) == before:
            raise UserError(f"No file of the folder {what} was recognised as a log or a /metrics text; name one.")
    return found, not_read


def _read_one(source: Source, args: argparse.Namespace, not_read: list[str] | None) -> list[Text]:
    """The texts of a source. In a folder (`not_read` is a list) a file that tells of no server is noted there."""
    try:
        found = texts.read_each(source, args.engine, args.num_draft_tokens)
    except UserError:
        if not_read is None:
            raise
        not_read.append(source.name)
        return []
    if not_read is None or any(map(_tells, found)):
        return found
    not_read.append(source.name)
    return []


def _tells(text: Text) -> bool:
    """Whether a text says anything of a server: a folder also has files in which an engine is only named."""
    log = text.log
    return log is None or bool(log.phases or log.acceptance or log.cause or log.totals or log.running_max is not None)


def judged(t: Together, args: argparse.Namespace) -> tuple[Together, list["Pays"]]:
    """A server, and whether speculation pays there, where r is given or known and the texts tell what a step yields.

    The server's load and method are those that the options tell, where the texts do not.
    """
    if args.concurrency is not None:
        t = replace(t, running=args.concurrency)
    if args.r is None and args.profile is None:
        return t, []
    from runners.commands import pays  # it imports pandas, which takes half a second, and a log needs none

    costs = pays.asked(args, t.engine)
    if t.drafter.method is None:
        t = replace(t, drafter=replace(t.drafter, method=costs[0].method))
    return t, [] if t.yields is None else pays.judged(t.yields, costs, t.running)


def words(found: Sequence[Text], servers: Sequence[tuple[Together, Sequence["Pays"]]]) -> list[str]:
    """All that is printed, a paragraph for each text, interval and server."""
    paragraphs = [[*([f"text        {t.name}"] if len(found) > 1 else []), *text_words(t)] for t in found]
    for together, pays in servers:
        paragraphs += [interval_words(i) for i in together.intervals]
        paragraphs.append(together_words(together, pays))
    return "\n\n".join("\n".join(p) for p in paragraphs).split("\n")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help="a log, a saved /metrics or /server_info (also .gz), a folder of them, - for standard input, or a URL",
    )
    parser.add_argument("--engine", choices=names(), help="whose texts they are, if they are not recognised")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    parser.add_argument("--schema", action="store_true", help="print the JSON's schema and stop")
    parser.add_argument("--num-draft-tokens", type=int, help="SGLang's setting, if the log does not show it")
    parser.add_argument("--seconds", type=arguments.positive, help="time between two snapshots, if they do not tell it")
    arguments.add_step_cost(parser)
    metrics_url.add_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Print what the texts show."""
    if args.schema:
        print(SCHEMA.read_text(encoding="utf-8"), end="")
        return 0
    if not args.what:
        raise UserError("Name what to read: files, folders, - for standard input, or a server's address.")
    found, not_read = read_all(args)
    servers = [judged(t, args) for t in by_server(found, args.seconds)]
    if args.json:
        print(json.dumps(document(servers, not_read), indent=1))
        return 0
    print("\n".join(words(found, servers)))
    if not_read:
        names_only = ", ".join(Path(name).name for name in not_read)
        print(f"\nnot read    {names_only}: no log and no /metrics text")
    return 0
