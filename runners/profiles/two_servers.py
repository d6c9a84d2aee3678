"""The profile of a question to two servers: does the one that speculates pay beside the other?"""

from dataclasses import dataclass, field
from typing import Any

BASE, SPEC = "base", "spec"  # its configurations
PASSES = 8  # blocks of each point that the time should hold at least: fewer rarely decide
WINDOW_S = (3.0, 30.0)  # the shortest and longest window
STARTS = (6, 40)  # the fewest and most visits that a campaign looks after: many looks ask more of each
BLOCKS = 4  # most blocks of a start: more of them never make up for starts
OVERHEAD_S = 0.7  # of a cell, beside its window and its ramp
TIMEOUT_S = (60.0, 300.0)  # the shortest and longest wait for the next byte of an answer


@dataclass(frozen=True)
class Side:
    """One of the two servers, as its configuration names it: where it runs already, or the command that starts it."""

    title: str
    model: str
    cap: int  # running requests at once
    url: str | None = None
    command: str | None = None
    method: str = "none"
    k: int | None = None
    api_key_env: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """What both are asked. tokens_per_second: of one stream of the slower one; seconds: what measuring may take.

    at_once: how many of the servers fit at the same time; start_seconds: until both are up, 0 where they run already.
    """

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
    at_once: int = 2
    start_seconds: float = 0.0


def content(title: str, base: Side, spec: Side, asked: Question) -> dict[str, Any]:
    """The profile's content, as its YAML file holds it."""
    plan = shape(asked)
    timing: dict[str, Any] = {"stream_tokens_per_second": {asked.engine: round(asked.tokens_per_second, 1)}}
    if asked.start_seconds:
        timing["start_seconds"] = {asked.engine: round(asked.start_seconds / 2, 1)}
    return {
        "title": title,
        "hardware": {"description": "where the servers run", "servers_at_once": asked.at_once},
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
                    "rounds": plan.starts,
                    "repeats": {c: plan.blocks for c in asked.concurrencies},
                    "requests": {c: max(4, 2 * c) for c in asked.concurrencies},
                    "window_seconds": plan.window_s,
                    "minutes": max(round(asked.seconds / 60, 2), 0.01),
                }
            },
        },
        "timing": timing,
        # A server that hangs must not take all of the time.
        "request_timeout_seconds": round(min(max(asked.seconds / 3, TIMEOUT_S[0]), TIMEOUT_S[1])),
        # Two servers at two batch sizes differ by numeric ties; another model differs from the start.
        "gates": {"equal_to_base_floor": 0.3, "check_neighbours": False},
    }


def _configuration(engine: str, side: Side) -> dict[str, Any]:
    found: dict[str, Any] = {"engine": engine, "title": side.title, "max_running_requests": side.cap}
    if side.method != "none":
        found["method"] = side.method
        if side.k is not None:
            found["k"] = side.k
    if side.command is not None:
        return found | {"command": side.command}
    optional = {"api_key_env": side.api_key_env, "headers": side.headers, "body": side.body}
    attach = {"url": side.url, "model": side.model} | {name: value for name, value in optional.items() if value}
    return found | {"attach": attach}


@dataclass(frozen=True)
class Shape:
    """How a campaign is cut: the longest window in seconds, the most starts (visits) and the blocks of each."""

    window_s: float
    starts: int
    blocks: int


def shape(asked: Question) -> Shape:
    """Such that the time holds PASSES starts, or as many as it does. It rests on how long a start and a block take and
    never on what they show.
    """
    cells = 2 * len(asked.prompt_sets) * len(asked.concurrencies)
    # Before a window opens its requests make about a quarter of an answer each; C streams are C / 3 times one's speed.
    ramps = [c * asked.output_tokens / (4 * asked.tokens_per_second * max(1.0, c / 3)) for c in asked.concurrencies]
    beside = sum(ramps) / len(ramps) + OVERHEAD_S
    shortest = asked.start_seconds + cells * (WINDOW_S[0] + beside)
    passes = min(max(asked.seconds / shortest, 2.0), float(PASSES))
    window_s = min(max((asked.seconds / passes - asked.start_seconds) / cells - beside, WINDOW_S[0]), WINDOW_S[1])
    block_s = cells * (window_s + beside)
    # A start that takes longer than its blocks is worth another block of each.
    blocks = min(max(round(asked.start_seconds / block_s), 1), BLOCKS)
    # Points that are decided leave their time to the others.
    starts = round(1.5 * asked.seconds / (asked.start_seconds + blocks * block_s))
    return Shape(round(window_s, 1), min(max(starts, STARTS[0]), STARTS[1]), blocks)
