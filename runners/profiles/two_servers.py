"""The profile of a question to two servers that run already: does the one that speculates pay beside the other?"""

from dataclasses import dataclass, field
from typing import Any

BASE, SPEC = "base", "spec"  # its configurations
PASSES = 8  # blocks of each point that the time should hold at least: fewer rarely decide
WINDOW_S = (3.0, 30.0)  # the shortest and longest window
STARTS = (6, 40)  # the fewest and most visits that a campaign looks after: many looks ask more of each
OVERHEAD_S = 0.7  # of a cell, beside its window and its ramp


@dataclass(frozen=True)
class Side:
    """One of the two servers, as its configuration names it."""

    url: str
    title: str
    model: str
    cap: int  # running requests at once
    method: str = "none"
    k: int | None = None
    api_key_env: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """What both are asked. tokens_per_second: of one stream of the slower one; seconds: what measuring may take."""

    engine: str
    version: str
    target: str
    prompt_sets: list[str]
    concurrencies: list[int]
    output_tokens: int
    ends: str
    temperature: float
    body: dict[str, Any]
    tokens_per_second: float
    seconds: float


def content(title: str, base: Side, spec: Side, asked: Question) -> dict[str, Any]:
    """The profile's content, as its YAML file holds it."""
    window_s, starts = shape(asked)
    return {
        "title": title,
        "target": {"name": asked.target},
        "engines": {asked.engine: {"version": asked.version}},
        "configurations": {
            BASE: _configuration(asked.engine, base),
            SPEC: _configuration(asked.engine, spec),
        },
        "workload": {
            "prompt_sets": asked.prompt_sets,
            "output_tokens": asked.output_tokens,
            "concurrencies": asked.concurrencies,
            "temperature": asked.temperature,
            "ends": asked.ends,
            "body": asked.body,
            "presets": {
                "quick": {
                    "rounds": starts,
                    "repeats": {c: 1 for c in asked.concurrencies},
                    "requests": {c: max(4, 2 * c) for c in asked.concurrencies},
                    "window_seconds": window_s,
                    "minutes": max(round(asked.seconds / 60, 2), 0.01),
                }
            },
        },
        "timing": {"stream_tokens_per_second": {asked.engine: round(asked.tokens_per_second, 1)}},
        # Two servers at two batch sizes differ by numeric ties; another model differs from the start.
        "gates": {"equal_to_base_floor": 0.3, "check_neighbours": False},
    }


def _configuration(engine: str, side: Side) -> dict[str, Any]:
    attach = {"url": side.url, "model": side.model}
    optional = {"api_key_env": side.api_key_env, "headers": side.headers, "body": side.body}
    found: dict[str, Any] = {"engine": engine, "title": side.title, "max_running_requests": side.cap}
    if side.method != "none":
        found["method"] = side.method
        if side.k is not None:
            found["k"] = side.k
    return found | {"attach": attach | {name: value for name, value in optional.items() if value}}


def shape(asked: Question) -> tuple[float, int]:
    """(longest window in seconds, most visits) such that the time holds PASSES blocks of each point, or as many as it
    does. It rests on how long a block takes and never on what it shows.
    """
    cells = 2 * len(asked.prompt_sets) * len(asked.concurrencies)
    # Before a window opens its requests make about a quarter of an answer each; C streams are C / 3 times one's speed.
    ramps = [c * asked.output_tokens / (4 * asked.tokens_per_second * max(1.0, c / 3)) for c in asked.concurrencies]
    beside = sum(ramps) / len(ramps) + OVERHEAD_S
    window_s = min(max(asked.seconds / PASSES / cells - beside, WINDOW_S[0]), WINDOW_S[1])
    # Points that are decided leave their time to the others.
    starts = round(1.5 * asked.seconds / (cells * (window_s + beside)))
    return round(window_s, 1), min(max(starts, STARTS[0]), STARTS[1])
