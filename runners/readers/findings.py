"""What is wrong or odd with a server, from what its texts say together; the most pressing first."""

from runners.core.finding import Finding
from runners.core.format import percent
from runners.readers.counter_figures import EVERY_STEP
from runners.readers.pooled import telling
from runners.readers.records import NOT_TOLD, AcceptanceRecord, LogReading
from runners.readers.together import Together

NOTHING = 1.05  # accept length below which a drafter contributes next to nothing
ENOUGH_STEPS, ENOUGH_LINES, ENOUGH_DRAFTED = 100, 5, 50


def findings(t: Together) -> list[Finding]:
    """Blockers first (the engine is dead or stands still), then what is wrong with the drafter, then notes."""
    found = [*_of_log(t), *_of_drafter(t)]
    rank = {"blocker": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda f: rank[f.level])


def _of_log(t: Together) -> list[Finding]:
    """How the engine fared."""
    log = t.log
    if log is None:
        return []
    found: list[Finding] = []
    if log.no_progress_since:
        waits = f": it waits for {log.waits_for}" if log.waits_for else ""
        found.append(Finding("blocker", f"no progress since {log.no_progress_since}{waits}", _fix(log)))
    if log.outcome == "dead":
        found.append(Finding("blocker", log.cause or f"{t.engine} died, and the log does not say why", _fix(log)))
    elif log.cause:
        # An error of one request says little about a server that is known to serve.
        of_request = " a request" in log.cause and log.outcome != NOT_TOLD
        state = f"; the state of the server is {NOT_TOLD}" if log.outcome == NOT_TOLD else ""
        found.append(Finding("note" if of_request else "warning", log.cause + state, _fix(log)))
    if log.without_speculation and log.without_speculation not in (log.cause or ""):
        found.append(
            Finding(
                "warning",
                f"the server serves without speculation: {log.without_speculation}",
                "if it should speculate, check the drafter and the method against what this build supports",
            )
        )
    left_out = t.pooled.throughput_left_out
    if left_out:
        lines = "1 line is" if left_out == 1 else f"{left_out:,} lines are"
        found.append(
            Finding("note", f"the throughput of {lines} left out: its interval may hold time in which nothing ran")
        )
    return found


def _fix(log: LogReading) -> str:
    return (log.advice or "read the log around the quoted line").strip()


def _of_drafter(t: Together) -> list[Finding]:
    """What the drafter contributes."""
    found: list[Finding] = []
    drafter, f = t.drafter, t.figures
    if drafter.disagree():
        found.append(
            Finding(
                "warning",
                f"method and head disagree: method {drafter.method} with the head {drafter.head}",
                "an EAGLE-3 head reads the states of several layers, an EAGLE head those of one; give it its method",
            )
        )
    if _every_draft_accepted(t):
        found.append(
            Finding(
                "warning",
                "every draft was accepted, which answers that repeat themselves do (a loop)",
                "read an answer before you trust this accept length",
            )
        )
    elif f.accept_length is not None and f.accept_length < NOTHING and _enough(t):
        accepted = "" if f.draft_acceptance is None else f", {three_figures(f.draft_acceptance)} of its tokens accepted"
        found.append(
            Finding(
                "warning",
                f"the drafter contributes nothing: accept length {f.accept_length:.3f}{accepted}",
                "repair the drafter, or switch speculation off",
            )
        )
    if f.drafted_share is not None and f.drafted_share < EVERY_STEP:
        share = percent(f.drafted_share)
        found.append(Finding("note", f"{share} of the decode steps had a draft; the others yield one token each"))
    return found


def _enough(t: Together) -> bool:
    """Whether there are enough steps for a verdict on the drafter."""
    if t.counts is not None and t.counts.steps is not None:
        return t.counts.steps >= ENOUGH_STEPS
    return t.pooled.lines >= ENOUGH_LINES or (t.pooled.drafted or 0) >= ENOUGH_STEPS


def _every_draft_accepted(t: Together) -> bool:
    """Whether no draft at all was rejected, in enough of them."""
    if t.counts is not None and t.counts.drafted is not None and t.counts.accepted is not None:
        return t.counts.accepted == t.counts.drafted >= ENOUGH_DRAFTED
    records = telling(t.log.acceptance) if t.log else []
    return len(records) >= ENOUGH_LINES and all(map(_all_accepted, records))


def _all_accepted(record: AcceptanceRecord) -> bool:
    if record.drafted is not None:
        return record.accepted == record.drafted
    # A printed rate of 1.00 means it by every definition; rounded, so it may be 0.995.
    return record.printed_rate is not None and record.printed_rate >= 1


def three_figures(share: float) -> str:
    """A share as per cent with three figures: 0.672%, 64.5%."""
    return f"{share * 100:.3g}%"


def not_told(t: Together) -> list[str]:
    """What these texts do not say, of that which one would want to know."""
    missing = []
    log = t.log
    if log is None:
        missing.append("how the server started and whether it had errors (its log)")
    elif not any(p.name == "ready" for p in log.phases):
        missing.append("the server's start")
    if t.figures.accept_length is None and t.figures.draft_acceptance is not None:
        missing.append("the accept length")
    elif t.figures.accept_length is None:
        missing.append("acceptance")
    else:
        if t.figures.draft_acceptance is None:
            missing.append("drafted tokens")
        if t.figures.per_position is None:
            missing.append("acceptance by position")
        if t.figures.drafted_share is None and (t.drafter.method is None or t.seldom_drafts):
            missing.append("how many decode steps had a draft")
    if t.running is None:
        missing.append("running requests")
    if t.tokens_per_second is None:
        missing.append("output throughput")
    return missing
