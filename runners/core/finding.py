"""One finding of a pre-flight check: how bad it is, what was seen, how to fix it."""

from dataclasses import dataclass

LEVELS = ("blocker", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """What was seen. `fault`: the fault it would produce, a name in drafter/faults.py, or None."""

    level: str
    text: str
    fix: str = ""
    fault: str | None = None
