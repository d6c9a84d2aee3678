"""What `specverdict read` prints of each text, and of what happened between two snapshots."""

from collections.abc import Sequence
from typing import Any

from runners.core.format import number
from runners.readers.counter_figures import Figures, figures
from runners.readers.findings import three_figures
from runners.readers.interval import Interval
from runners.readers.pooled import Pooled, telling
from runners.readers.records import AcceptanceRecord, Counters, LogReading
from runners.readers.texts import Text

SHOWN = 8  # acceptance lines printed; --json has them all


def text_words(text: Text) -> list[str]:
    """One text by itself."""
    if text.log is not None:
        return log_words(text, text.log)
    if text.snapshot is not None:
        return metrics_words(text.snapshot.counters)
    return info_words(text.engine, text.info or {})


def metrics_words(c: Counters) -> list[str]:
    """A /metrics text. Its counters hold all requests since the server's start, warm-up included."""
    words = [f"source      {c.source}"]
    words.append(f"requests    running {number(c.running, 0)}, queued {number(c.queued, 0)}")
    counted = {"steps": c.steps, "drafted": c.drafted, "accepted": c.accepted}
    words.append("counts      " + ", ".join(f"{name} {number(n, 0)}" for name, n in counted.items()))
    words += figure_words(figures(c), "since the server's start")
    words += [f"gauge       {name} {value:g} (of the last interval)" for name, value in c.gauges.items()]
    return words


def info_words(engine: str, info: dict[str, Any]) -> list[str]:
    """A /server_info: the cap that was really in force, and the accept length since the start."""
    words = [f"source      {engine} /server_info, version {info['version'] or '-'}"]
    caps = info["effective_max_running_requests"], info["effective_max_running_requests_per_dp"]
    words.append(f"cap         {number(caps[0], 0)} running requests, {number(caps[1], 0)} of each data-parallel rank")
    length, tokens = info["avg_spec_accept_length"], info["num_draft_tokens"]
    if length is not None:
        words.append(f"acceptance  accept length {length:.3f} since the server's start, the bonus token counted in")
        if tokens and tokens > 1:
            share = three_figures((length - 1) / (tokens - 1))
            words.append(f"recomputed  draft acceptance {share} of a chain's {tokens - 1} drafts")
    return words


def log_words(text: Text, r: LogReading) -> list[str]:
    """A log and its reading: phases, acceptance, load and outcome."""
    sure = f" ({r.engine_certainty})" if r.engine_certainty else ""
    words = [f"engine      {text.engine}{sure}" + (f", {r.generation}" if r.generation else "")]
    last = max((i for i, p in enumerate(r.phases) if p.name == "restarted"), default=0)
    if last:
        restarts = sum(p.name == "restarted" for p in r.phases)
        words.append(f"restarts    {restarts} in this log; the phases are those of the last start")
    for p in r.phases[last:]:
        lasted = "" if p.seconds is None else f", {p.seconds:g} s"
        words.append(f"phase       {p.name}" + (f" at {p.at}" if p.at else "") + lasted)
    words += _acceptance_words(r, text.pooled)
    if r.totals is not None:
        same = r.totals.drafted == text.pooled.drafted  # as those lines say: only the steps are new
        of_totals = figures(r.totals)
        words += step_words(of_totals) if same else figure_words(of_totals, f"by {r.totals.source}")
    if r.running_max is not None:
        words.append(f"requests    {r.running_max} running at most")
    words.append(f"outcome     {r.outcome}")
    if r.no_progress_since:
        words.append(f"stall       no progress since {r.no_progress_since}; it waits for {r.waits_for}")
    if r.without_speculation:
        words.append(f"speculation none: {r.without_speculation}")
    if r.cause:
        words.append(f"cause       {r.cause} [{r.cause_kind}]")
    if r.advice:
        words.append(f"try         {r.advice}")
    words.append(f"lines       {r.lines:,}, of which {r.unknown_lines:,} are in no form that this reader knows")
    return words


def _acceptance_words(r: LogReading, pooled: Pooled) -> list[str]:
    """The last acceptance lines as printed and recomputed, and all of them pooled (a ratio of sums)."""
    told = telling(r.acceptance)
    words = [_line_words(a) for a in told[-SHOWN:]]
    if len(told) > SHOWN:
        words.append(f"            the last {SHOWN} of {len(told):,} lines; --json has all")
    if pooled.lines:
        parts = [] if pooled.accept_length is None else [f"accept length {pooled.accept_length:.3f}"]
        if pooled.draft_acceptance is not None:
            drafted = "" if pooled.drafted is None else f" of {pooled.drafted:,} drafted tokens"
            parts.append(f"draft acceptance {three_figures(pooled.draft_acceptance)}{drafted}")
        words.append(f"pooled      {', '.join(parts) or 'no figure'} over {_lines(pooled.lines)}")
        if pooled.per_position:
            words.append(f"            survival by position {_rates(pooled.per_position)}")
        if pooled.throughput is not None:
            words.append(f"throughput  {pooled.throughput:,.1f} output tokens/s, the median of the lines")
        if pooled.throughput_left_out:
            left_out = _lines(pooled.throughput_left_out)
            words.append(f"            {left_out} left out of it, whose interval may hold time in which nothing ran")
    elif r.plain_throughputs:
        middle = sorted(r.plain_throughputs)[len(r.plain_throughputs) // 2]
        words.append(f"throughput  {middle:,.1f} output tokens/s, the median of {_lines(len(r.plain_throughputs))}")
    return words


def _line_words(a: AcceptanceRecord) -> str:
    """One acceptance line."""
    parts = [f"accept length {a.accept_length:.2f}" if a.accept_length is not None else "accept length -"]
    if a.printed_rate is not None:
        parts.append(f"rate {_printed(a.printed_rate)} as printed ({a.definition})")
    if a.recomputed_rate is not None:
        parts.append(f"{three_figures(a.recomputed_rate)} recomputed (accepted / drafted)")
    if a.per_position:
        parts.append(f"by position {_rates(a.per_position)}")
    if a.running is not None:
        parts.append(f"{a.running} running, {number(a.queued, 0)} queued")
    if a.throughput is not None:
        left_out = " (left out: the first line after a pause, or of this text)" if a.idle else ""
        parts.append(f"{a.throughput:,.1f} tokens/s{left_out}")
    return "acceptance  " + "; ".join(parts)


def _printed(rate: float) -> str:
    """A rate with the digits that tell it from 0."""
    return f"{rate:.2f}" if rate >= 0.1 or rate == 0 else f"{rate:.3g}"


def figure_words(f: Figures, when: str) -> list[str]:
    """Accept length, draft acceptance, survival, and what a step yields where some steps had no draft."""
    words = []
    if f.accept_length is not None:
        words.append(f"recomputed  accept length {f.accept_length:.3f} {when}")
    if f.draft_acceptance is not None:
        words.append(f"            draft acceptance {three_figures(f.draft_acceptance)}, the bonus token not counted")
    if f.per_position:
        words.append(f"            survival by position {_rates(f.per_position)}")
    return words + step_words(f)


def step_words(f: Figures) -> list[str]:
    """What a decode step yields where some had no draft."""
    if f.tokens_per_step is None or f.drafted_share is None or f.drafted_share >= 1:
        return []
    share = three_figures(f.drafted_share)
    return [f"            {f.tokens_per_step:.3f} tokens per step over all decode steps; {share} had a draft"]


def interval_words(i: Interval) -> list[str]:
    """What happened between two snapshots."""
    length = "of unknown length (give --seconds)" if i.seconds is None else f"{i.seconds:,.1f} s by {i.time_from}"
    words = [f"interval    {i.before} -> {i.after}, {length}"]
    c = i.counters
    words.append(
        f"counts      output tokens {number(c.output_tokens, 0)}, steps {number(c.steps, 0)}, "
        f"drafted {number(c.drafted, 0)}, accepted {number(c.accepted, 0)}"
    )
    if i.tokens_per_second is not None:
        words.append(f"rates       {i.tokens_per_second:,.1f} output tokens/s")
        if i.steps_per_second is not None:
            words[-1] += f", {i.steps_per_second:,.1f} steps with a draft a second"
    running = [number(n, 0) for n in i.running]
    words.append(f"requests    running {running[0]} at the beginning, {running[1]} at the end")
    return words + figure_words(i.figures, "in this interval")


def _rates(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:.3f}" for rate in rates)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"
