"""A server's log, trimmed to what matters: load phases, warnings, errors, acceptance; the rest is counted."""

import re
from types import ModuleType

MATTERS = re.compile(r"warn|error|exception|traceback|fatal|killed", re.IGNORECASE)
KEEP_OF_A_KIND = 30
WIDTH = 400  # characters; of a longer line its end is kept, where an error's message is


def trim_log(text: str, reader: ModuleType) -> str:
    """The first and last five lines, every phase, and the first KEEP_OF_A_KIND of warnings and of acceptance lines.

    Each gap is one line that says how many were left out. reader: the engine's module (registry.py).
    """
    lines = [line[-WIDTH:] for line in text.replace("\r", "\n").splitlines()]
    counts = {"matters": 0, "acceptance": 0}
    kept: list[str] = []
    dropped = 0
    for number, line in enumerate(lines):
        kind = None
        if number < 5 or number >= len(lines) - 5 or reader.phase_of(line):
            kind = "always"
        elif reader.acceptance_of(line) is not None:
            kind = "acceptance"
        elif MATTERS.search(line):
            kind = "matters"
        if kind in counts:
            counts[kind] += 1
            kind = kind if counts[kind] <= KEEP_OF_A_KIND else None
        if kind is None:
            dropped += 1
            continue
        if dropped:
            kept.append(f"[{dropped} lines left out]")
            dropped = 0
        kept.append(line)
    if dropped:
        kept.append(f"[{dropped} lines left out]")
    return "\n".join(kept) + "\n"
