"""One text, read: what kind it is, whose it is and what it says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from runners.core import json_text
from runners.core.errors import UserError
from runners.readers import prometheus
from runners.readers.drafter_settings import DrafterSettings, drafter_settings
from runners.readers.interval import CLOCK, FILES, ROWS, Snapshot
from runners.readers.log_lines import LogLines
from runners.readers.pooled import Pooled, pool
from runners.readers.read_text import read_text
from runners.readers.recognise import CERTAIN, UNSURE
from runners.readers.records import Counters, LogReading
from runners.readers.registry import all_readers, names, reader
from runners.readers.sources import Source

LOG, METRICS, SERVER_INFO = "log", "metrics", "server_info"


@dataclass(frozen=True)
class Text:
    """What one text says: `log`, `snapshot` (of counters) or `info` (the fields of a /server_info), by its kind.

    engine: more than one name where nothing decides ("sglang or vllm"). certainty: how sure it is whose text this is.
    drafter: what the first lines of a log say of the drafter. at: when the text was written, seconds since 1970.
    """

    name: str
    kind: str
    engine: str
    certainty: str
    log: LogReading | None = None
    snapshot: Snapshot | None = None
    info: dict[str, Any] | None = None
    drafter: DrafterSettings = field(default_factory=DrafterSettings)
    at: float | None = None

    @cached_property
    def pooled(self) -> Pooled:
        """The acceptance lines of the log taken together; computed once, for a log may have a million."""
        return pool(self.log.acceptance) if self.log is not None else Pooled()

    @property
    def content(self) -> LogReading | Counters | dict[str, Any]:
        """What the reader of its engine returned."""
        if self.log is not None:
            return self.log
        return self.snapshot.counters if self.snapshot is not None else self.info or {}


def read(source: Source, engine: str | None = None, num_draft_tokens: int | None = None) -> Text:
    """`read_each` of what is one text; of several scrapes in one file the last."""
    return read_each(source, engine, num_draft_tokens)[-1]


def read_each(source: Source, engine: str | None = None, num_draft_tokens: int | None = None) -> list[Text]:
    """The texts of a source by their content: one, or each of the scrapes that were appended to one file.

    engine: whose it is, where the person says so. UserError when it is not recognised.
    """
    lines = LogLines(source.lines())
    if info := _server_info(source, lines.raw_sample, engine):
        return [info]
    kind = metrics_engine(lines.sample)
    if kind and engine in (None, kind):
        return _metrics(source, kind, "".join(lines))
    log = read_text(source.lines(), engine, num_draft_tokens)
    if log is None:
        raise UserError(
            f"{source.name} was not recognised as a log of {', '.join(names())}: no line of it is of a form that one "
            "of them writes. If it is one, name the engine with --engine."
        )
    totals_of = getattr(all_readers().get(log.engine), "totals_of", None)
    if log.totals is None and totals_of is not None:
        log.totals = totals_of(log.acceptance)
    sure = log.engine_certainty or UNSURE
    drafter = drafter_settings(lines.sample)
    return [Text(source.name, LOG, log.engine, sure, log=log, drafter=drafter, at=source.at)]


def metrics_engine(lines: Iterable[str]) -> str | None:
    """The engine whose /metrics text these lines begin; None for another text."""
    known = all_readers()
    return next((space for line in lines if (space := prometheus.namespace(line)) in known), None)


def _metrics(source: Source, engine: str, text: str) -> list[Text]:
    """The counters of each scrape, with its time: its rows' own, else the file's, which is that of the last one."""
    found = []
    scrapes = prometheus.snapshots(text)
    for number, scrape in enumerate(scrapes, 1):
        name = source.name if len(scrapes) == 1 else f"{source.name} ({number} of {len(scrapes)})"
        at, time_from = prometheus.stamp(scrape), ROWS
        if at is None:
            at, time_from = source.at if number == len(scrapes) else None, FILES if source.path else CLOCK
        counters = reader(engine).read_counters(scrape)
        snapshot = Snapshot(name, counters, at, time_from, prometheus.started(scrape))
        found.append(Text(name, METRICS, engine, CERTAIN, snapshot=snapshot, at=at))
    return found


def _server_info(source: Source, first: Sequence[str], engine: str | None) -> Text | None:
    """A saved /server_info, read by an engine's `read_server_info` (SGLang's); None for anything else."""
    readers = {n: r for n, r in all_readers().items() if engine in (None, n) and hasattr(r, "read_server_info")}
    if not readers or not "".join(first[:1]).lstrip().startswith("{"):
        return None
    name, module = next(iter(readers.items()))
    try:
        found = json_text.loads(source.text())
        info = module.read_server_info(found) if "internal_states" in found else None
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return None  # a log whose first line begins with a brace, or another program's answer
    return None if info is None else Text(source.name, SERVER_INFO, name, CERTAIN, info=info, at=source.at)
