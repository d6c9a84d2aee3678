"""Counts of a cell from SGLang's decode lines, where the engine exports none.

A line covers `--decode-log-interval` passes. It has the accept length over them, (A + F) / F with A accepted tokens in
F verification steps, and the running requests of the last pass. Every pass verifies each running request once, so F is
near running x interval: lines are weighted by their running requests. Steps and accepted tokens then follow from the
output tokens.
"""

from dataclasses import replace
from pathlib import Path

from runners.readers.records import AcceptanceRecord, Counters


def mean_accept_length(records: list[AcceptanceRecord]) -> float | None:
    """Accept length over several decode lines, weighted by running requests; None without a line."""
    weights = [(r.running or 1, r.accept_length) for r in records if r.accept_length]
    total = sum(w for w, _ in weights)
    return sum(w * length for w, length in weights) / total if total else None


def estimated(records: list[AcceptanceRecord], counts: Counters, requests: int, output_tokens: int, k: int) -> Counters:
    """`counts` with steps, drafted and accepted filled in from the lines; unchanged without a line.

    A request's first token comes from its prefill: decode tokens = output tokens - requests = steps x accept length.
    k: draft tokens a step.
    """
    length = mean_accept_length(records)
    if length is None or counts.accepted is not None:
        return counts
    decoded = max(0, output_tokens - requests)
    steps = counts.steps or round(decoded / length)  # newer releases count verification calls
    return replace(
        counts,
        steps=steps,
        drafted=steps * k,
        accepted=max(0, decoded - steps),
        source=f"{len(records)} decode lines of the log",
    )


def piece(log: Path, start: int) -> list[str]:
    """The lines that a log gained since byte `start`."""
    with open(log, "rb") as handle:
        handle.seek(start)
        return handle.read().decode(errors="replace").splitlines()
