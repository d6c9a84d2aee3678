"""One finding of a pre-flight check: how bad it is, what was seen, how to fix it."""

from dataclasses import dataclass

LEVELS = ("blocker", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """What was seen; `cause` is the key of the failure it would produce (hypotheses.CAUSES) or None."""

    level: str
    text: str
    fix: str = ""
    cause: str | None = None
