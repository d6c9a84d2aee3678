"""`specverdict read --json`: one document, described by read_schema.json beside this file."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.commands.read_answer import answer
from runners.readers.findings import findings, not_told
from runners.readers.interval import Interval
from runners.readers.texts import Text
from runners.readers.together import Together

if TYPE_CHECKING:
    from runners.commands.pays import Pays

SCHEMA = Path(__file__).with_name("read_schema.json")
SCHEMA_VERSION = 1


def document(servers: Sequence[tuple[Together, Sequence["Pays"]]], not_read: Sequence[str] = ()) -> dict[str, Any]:
    """All servers with their texts. not_read: files of a folder that are no text of an engine."""
    return {
        "schema_version": SCHEMA_VERSION,
        "servers": [_server(t, pays) for t, pays in servers],
        "not_read": list(not_read),
    }


def _server(t: Together, pays: Sequence["Pays"]) -> dict[str, Any]:
    found = findings(t)
    return {
        "engine": t.engine,
        "certainty": t.certainty,
        "texts": [_text(text) for text in t.texts],
        "intervals": [interval_row(i) for i in t.intervals],
        "figures": dataclasses.asdict(t.figures),
        "figures_from": t.source,
        "running": t.running,
        "tokens_per_second": t.tokens_per_second,
        "drafter": dataclasses.asdict(t.drafter),
        "pays": [dataclasses.asdict(p) for p in pays],
        "findings": [{"level": f.level, "text": f.text, "fix": f.fix} for f in found],
        "not_told": not_told(t),
        "answer": answer(t, found, pays),
    }


def _text(text: Text) -> dict[str, Any]:
    content = text.content
    return {
        "name": text.name,
        "kind": text.kind,
        "at": text.at,
        "content": content if isinstance(content, dict) else dataclasses.asdict(content),
    }


def interval_row(i: Interval) -> dict[str, Any]:
    """An interval; `watch --json` prints one a line."""
    return dataclasses.asdict(i)
