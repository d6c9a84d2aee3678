"""The answers of `specverdict ask` in words and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from runners.analyse import inference
from runners.analyse.ask_answers import Answer, Speeds, Triple
from runners.commands.ask_servers import Servers
from runners.core.format import NOT_MEASURED, listed, percent

SCHEMA_VERSION = 1
HEADS = {
    inference.YES: "pays",
    inference.NO: "does not pay",
    inference.NO_DIFFERENCE: "no difference",
    inference.UNDECIDED: "undecided",
    NOT_MEASURED: "not measured",
}
RUNNING = (
    "The intervals hold for these two running servers, these prompts and these minutes; another start of the servers, "
    "or other prompts, may differ by more."
)
STARTED = (
    "The intervals are over starts of both servers, with these prompts in these minutes; another machine, or other "
    "prompts, may differ by more."
)
SHOWN = 3  # reasons of void cells; --json has all


def lines(found: Sequence[Answer], started: bool) -> list[str]:
    """Every load with its figures and what would turn its answer; what the intervals cover; what was not seen."""
    text: list[str] = []
    for one in found:
        text += [*_lines(one), ""]
    text.append(covers(started))
    unseen = dict.fromkeys(what for one in found for what in one.not_seen)
    return text + [f"Not seen: {what}." for what in unseen]


def covers(started: bool) -> str:
    """What the intervals hold for. started: the servers are started for the question, each several times."""
    return STARTED if started else RUNNING


def _lines(one: Answer) -> list[str]:
    head = f"C={one.concurrency} · {one.workload}: {HEADS[one.pays]}"
    if one.ratio is None:
        return [head, *(f"  {reason}" for reason in one.reasons[:SHOWN])]
    text = [f"{head}: {interval(one.ratio)} times the base's throughput ({_basis(one)})"]
    text += [f"  {line}" for line in (_speeds(one), _acceptance(one), _why(one), turning(one)) if line]
    if one.capped_at is not None:
        text.append(f"  a server runs at most {one.capped_at} at once: the others of the {one.concurrency} wait")
    if one.reasons:
        text.append(f"  left out: {listed(one.reasons[:SHOWN])}")
    return text


def interval(triple: Triple) -> str:
    """A ratio with its bounds, where they are known."""
    point, low, high = triple
    if low is None or high is None:
        return f"{point:.2f}"
    return f"{point:.2f} [{low:.2f}, {high:.2f}]" if high < 100 else f"{point:.2f} [{low:.2f}, over 100]"


def _basis(one: Answer) -> str:
    blocks = f"{one.blocks} block{'' if one.blocks == 1 else 's'}"
    return blocks if one.ratio is None or one.ratio[1] is None else f"{percent(one.level, 0)} interval over {blocks}"


def _speeds(one: Answer) -> str | None:
    if one.base is None or one.spec is None:
        return None
    named = (("tokens/s", "tokens_per_second", 1), ("TTFT ms", "ttft_ms", 0), ("TPOT ms", "tpot_ms", 1))
    parts = [f"{what} {_beside(one.base, one.spec, name, digits)}" for what, name, digits in named]
    return "base -> spec: " + " · ".join(parts)


def _beside(base: Speeds, spec: Speeds, name: str, digits: int) -> str:
    values = (getattr(base, name), getattr(spec, name))
    return " -> ".join("-" if v is None else f"{v:,.{digits}f}" for v in values)


def _acceptance(one: Answer) -> str | None:
    """The accept length as counted; nothing where the server shows none (`not_seen` says so)."""
    if one.drafted == 0:
        return "no token was drafted: on these prompts it does not speculate"
    if one.accept_length is None:
        return None
    text = f"accept length {one.accept_length:.2f}" + (f" of at most {one.k + 1}" if one.k else "")
    if one.sampled:
        return text + " (a gauge of the last moments, sampled: this engine exports no counts)"
    if one.per_step is not None and abs(one.per_step - one.accept_length) > 0.02 * one.accept_length:
        text += f"; {one.per_step:.2f} tokens a step over all steps, those without a draft included"
    if one.survival:
        text += f"; accepted by position {listed(percent(s, 0) for s in one.survival)}"
    return text


def _why(one: Answer) -> str | None:
    """The answer's reason: what a step costs against what it yields."""
    if one.decode_speed_up is None:
        return None
    decoding = f"decoding is {interval(one.decode_speed_up)} times as fast"
    if one.step_cost is None or one.per_step is None:
        return f"{decoding} by the client's clock; without the accept length r is not known"
    step = f"r = {interval(one.step_cost)} plain steps and yields {one.per_step:.2f} tokens"
    return f"a step with drafts costs {step}: {decoding}"


def turning(one: Answer) -> str | None:
    """What would turn the answer: another accept length at this r, or more minutes."""
    needed, r = one.needed_length, None if one.step_cost is None else one.step_cost[0]
    if one.pays == inference.UNDECIDED:
        return _undecided(one)
    if needed is None or r is None:
        return None
    if one.pays == inference.YES:
        return f"it would stop paying below {r:.2f} tokens a step, at this r"
    return f"it would pay from {needed:.2f} tokens a step on, at this r (r and the margin of {percent(one.margin, 0)})"


def _undecided(one: Answer) -> str:
    if one.more_minutes is None:
        return f"so near the margin of {percent(one.margin, 0)} that no measuring in sight decides it"
    minutes = max(1, round(one.more_minutes))
    return f"about {minutes} more minute{'' if minutes == 1 else 's'} would decide it, if the ratio is what it seems"


def as_json(found: Sequence[Answer], servers: Servers, minutes: float) -> dict[str, Any]:
    """schema_version; servers: base and spec; answers: the fields of Answer, triples as [figure, low, high], with
    `needed_length` and `turns` (what would turn the answer, in words); covers; notes; minutes that it took.
    """
    every = [asdict(one) | {"needed_length": one.needed_length, "turns": turning(one)} for one in found]
    return {
        "schema_version": SCHEMA_VERSION,
        "servers": servers.as_json(),
        "answers": every,
        "covers": covers(servers.started),
        "notes": list(servers.notes),
        "minutes": round(minutes, 2),
    }
