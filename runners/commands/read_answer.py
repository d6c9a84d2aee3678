"""What all texts of one server say together, and one sentence that a person can act on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runners.core.finding import Finding
from runners.core.format import listed
from runners.readers.findings import NOTHING, findings, not_told, three_figures
from runners.readers.records import NOT_TOLD
from runners.readers.together import Together

if TYPE_CHECKING:  # it imports pandas, which takes half a second, and a log needs none
    from runners.commands.pays import Pays


def together_words(t: Together, pays: Sequence["Pays"] = ()) -> list[str]:
    """The server, what a decode step yields, whether that pays, what is odd, what is not in the texts, the answer."""
    words = [f"server      {t.engine} ({t.certainty}), by {listed(text.name for text in t.texts)}"]
    if t.yields is not None:
        words.append(f"yield       {t.yields:.3f} tokens a decode step, from {t.source}")
    words += [f"pays        {p.words}" for p in pays]
    found = findings(t)
    words += [f"{f.level:11} {f.text}" for f in found]
    missing = not_told(t)
    if missing:
        words.append(f"not told    {listed(missing)}")
    words.append(f"in short    {answer(t, found, pays)}")
    return words


def answer(t: Together, found: Sequence[Finding], pays: Sequence["Pays"] = ()) -> str:
    """One sentence: what is wrong and what to do; else whether speculation pays; else what would tell it."""
    pressing = [f for f in found if f.level != "note"]
    if pressing:
        first = pressing[0]
        fix = first.fix[:1].lower() + first.fix[1:]
        return _sentence(f"{first.text.rstrip('.')}; {fix}" if fix else first.text, t.engine)
    if t.yields is not None:
        return _sentence(_of_yield(t, t.yields, pays), t.engine)
    if t.figures.accept_length is not None:
        return (
            f"A step with a draft yields {t.figures.accept_length:.2f} tokens, and how many steps had one is not told "
            "here: two snapshots of /metrics tell it."
        )
    if t.figures.draft_acceptance is not None:
        return (
            f"{three_figures(t.figures.draft_acceptance)} of the drafted tokens were accepted: with K drafts a step, "
            "the accept length is 1 plus K times that; a text that counts steps tells it."
        )
    return _sentence(_without_acceptance(t), t.engine)


def _of_yield(t: Together, yields: float, pays: Sequence["Pays"]) -> str:
    """The sentence where it is known what a decode step yields."""
    if pays:
        at = f" at {t.running:.3g} running requests" if t.running else ""
        return f"with {yields:.2f} tokens a step{at}, {'; '.join(p.words for p in pays)}"
    if yields < NOTHING:
        return (
            f"a decode step yields {yields:.2f} tokens, so the drafter hardly contributes here, which costs its time: "
            "see whether more of the server's texts say the same"
        )
    return (
        f"a decode step yields {yields:.2f} tokens, so speculation pays where such a step takes less than {yields:.2f} "
        "times a plain one: give that ratio with --r or --profile, or measure it with `specverdict ask`"
    )


def _without_acceptance(t: Together) -> str:
    """The sentence where no text tells of drafts and nothing is wrong."""
    log = t.log
    if log is not None and log.outcome in ("starting", "ready"):
        state = "is still starting" if log.outcome == "starting" else "is ready, and nothing was asked of it"
        return f"{t.engine} {state} at the end of this log: read it again later"
    silent = t.tokens_per_second is None and not any(text.snapshot for text in t.texts)
    if log is not None and silent and log.outcome == NOT_TOLD:
        return f"this text is {t.engine}'s and tells neither its state nor its acceptance: give more of its log"
    if log is not None and silent and log.running_max is None:
        return f"this text is {t.engine}'s and tells nothing of its drafts: give more of its log, or its /metrics"
    stopped = ", until it was stopped," if log is not None and log.outcome == "stopped" else ""
    speed = "" if t.tokens_per_second is None else f" at {t.tokens_per_second:,.0f} output tokens/s"
    running = "" if t.running is None else f" with {t.running:.3g} requests running"
    return (
        f"no drafts are counted here, so {t.engine} seems to serve{stopped}{speed}{running} without speculation: "
        "if it should speculate, check its command line"
    )


def _sentence(text: str, engine: str) -> str:
    """With a capital, unless an engine's name begins it, and a full stop."""
    text = text.strip()
    begin = text[:1] if text.startswith(engine) else text[:1].upper()
    return begin + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
