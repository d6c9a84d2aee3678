"""What several texts of one server say together: logs, snapshots of its counters, its /server_info.

Acceptance and load are taken from the best source that there is: an interval between two snapshots, else the counters
since the server's start, else the log, else what the engine computed itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from runners.core.errors import UserError
from runners.readers import interval
from runners.readers.counter_figures import Figures, figures
from runners.readers.drafter_settings import DrafterSettings
from runners.readers.interval import Interval
from runners.readers.pooled import Pooled
from runners.readers.records import Counters, LogReading
from runners.readers.texts import Text


@dataclass(frozen=True)
class Together:
    """One server. figures: acceptance; source: where they are from, in words, "" where no text tells them.

    counts: behind the figures, None where they are not from counts. running: requests at the same time, typically;
    tokens_per_second: output tokens. pooled: of the log's acceptance lines.
    """

    engine: str
    certainty: str
    texts: tuple[Text, ...]
    intervals: list[Interval]
    figures: Figures = field(default_factory=Figures)
    source: str = ""
    counts: Counters | None = None
    running: float | None = None
    tokens_per_second: float | None = None
    pooled: Pooled = field(default_factory=Pooled)
    drafter: DrafterSettings = field(default_factory=DrafterSettings)

    @property
    def log(self) -> LogReading | None:
        """The reading of the last log: of several, earlier ones are what was rotated away."""
        text = last_log(self.texts)
        return text.log if text else None

    @property
    def yields(self) -> float | None:
        """Tokens that a decode step yields; None where it is not told.

        A drafter model drafts in every step. An n-gram drafter does not, and then the accept length is not enough.
        """
        f = self.figures
        if self.seldom_drafts and (self.counts is None or self.counts.output_tokens is None):
            return None
        return f.accept_length if f.tokens_per_step is None else f.tokens_per_step

    @property
    def seldom_drafts(self) -> bool:
        """Whether the drafter may find nothing to draft in a step (n-gram lookup), as far as the texts tell."""
        return "gram" in (self.drafter.method or "").lower()


def of_one_server(texts: Sequence[Text], seconds: float | None = None) -> Together:
    """The texts of one server together. seconds: between its two snapshots, where the person gives it.

    UserError when the server was restarted between two snapshots.
    """
    snapshots = [t.snapshot for t in texts if t.snapshot is not None]
    between = interval.intervals(snapshots, seconds) if len(snapshots) > 1 or seconds is not None else []
    logged = last_log(texts)
    pooled = logged.pooled if logged else Pooled()
    found, source, counts = _acceptance(texts, between, pooled)
    first = min(texts, key=lambda t: " or " in t.engine)  # the one that is sure of its engine
    return Together(
        engine=first.engine,
        certainty=first.certainty,
        texts=tuple(texts),
        intervals=between,
        figures=found,
        source=source,
        counts=counts,
        running=_running(texts, between, pooled),
        tokens_per_second=_speed(texts, between, pooled),
        pooled=pooled,
        drafter=next((t.drafter for t in texts if t.drafter != DrafterSettings()), DrafterSettings()),
    )


def _engine_of(text: Text, texts: Sequence[Text]) -> str:
    """A text's engine. Where nothing decides between several, the one of them that the other texts are of."""
    others = {t.engine for t in texts} & set(text.engine.split(" or "))
    return others.pop() if len(others) == 1 else text.engine


def last_log(texts: Sequence[Text]) -> Text | None:
    """The log that was written last, the last given where they do not tell."""
    logs = [t for t in texts if t.log is not None]
    return max(reversed(logs), key=lambda t: t.at or 0.0, default=None)


def by_server(texts: Sequence[Text], seconds: float | None = None) -> list[Together]:
    """The texts by engine, in the order in which the engines come: texts of one engine are of one server.

    UserError when `seconds` is given and there are no two snapshots of a server.
    """
    if seconds is not None and not any(t.snapshot for t in texts):
        raise UserError("--seconds is the time between two snapshots of /metrics, and none is given; leave it out.")
    of = [_engine_of(t, texts) for t in texts]
    groups = [[t for t, e in zip(texts, of, strict=True) if e == engine] for engine in dict.fromkeys(of)]
    return [of_one_server(g, seconds if any(t.snapshot for t in g) else None) for g in groups]


def _acceptance(
    texts: Sequence[Text], between: Sequence[Interval], pooled: Pooled
) -> tuple[Figures, str, Counters | None]:
    """(figures, where they are from, the counts behind them)."""
    snapshots = [t.snapshot for t in texts if t.snapshot is not None]
    candidates = [(i.counters, f"the interval from {i.before} to {i.after}") for i in reversed(between)]
    candidates += [(s.counters, "the counters since the server's start") for s in snapshots[-1:]]
    for counts, source in candidates:
        if (found := figures(counts)).accept_length is not None:
            return found, source, counts
    logged = last_log(texts)
    totals = logged.log.totals if logged and logged.log else None
    if totals is not None and (found := figures(totals)).accept_length is not None:
        by_position = found.per_position or pooled.per_position
        return replace(found, per_position=by_position), f"the {totals.source}", totals
    if pooled.lines:
        lines = f"{pooled.lines:,} acceptance {'line' if pooled.lines == 1 else 'lines'} of the log"
        return Figures(pooled.accept_length, pooled.draft_acceptance, pooled.per_position), lines, None
    return _engines_own(texts)


def _engines_own(texts: Sequence[Text]) -> tuple[Figures, str, None]:
    """The accept length that an engine computed itself: of its last logging interval, or since its start."""
    for text in reversed(texts):
        gauges = text.snapshot.counters.gauges if text.snapshot else {}
        if length := gauges.get("spec_accept_length"):
            return Figures(length, _share(length, gauges.get("spec_num_draft_tokens"))), "the gauge of the moment", None
        if text.info and (length := text.info.get("avg_spec_accept_length")):
            share = _share(length, text.info.get("num_draft_tokens"))
            return Figures(length, share), "the server's own mean since its start", None
    return Figures(), "", None


def _share(length: float, num_draft_tokens: float | None) -> float | None:
    """accepted / drafted of a chain; num_draft_tokens counts the bonus position too."""
    return (length - 1) / (num_draft_tokens - 1) if num_draft_tokens and num_draft_tokens > 1 else None


def _running(texts: Sequence[Text], between: Sequence[Interval], pooled: Pooled) -> float | None:
    """Requests at the same time: of the last interval, as the log's lines have it, or at the last snapshot."""
    if between and between[-1].mean_running is not None:
        return between[-1].mean_running
    if pooled.running is not None:
        return pooled.running
    at_snapshots = [t.snapshot.counters.running for t in texts if t.snapshot and t.snapshot.counters.running]
    most = [t.log.running_max for t in texts if t.log and t.log.running_max]
    return at_snapshots[-1] if at_snapshots else most[-1] if most else None


def _speed(texts: Sequence[Text], between: Sequence[Interval], pooled: Pooled) -> float | None:
    """Output tokens per second over an interval, else the median of what the log's lines print."""
    if between and between[-1].tokens_per_second is not None:
        return between[-1].tokens_per_second
    plain = sorted(speed for t in texts if t.log for speed in t.log.plain_throughputs)
    return pooled.throughput if pooled.throughput is not None else plain[len(plain) // 2] if plain else None
