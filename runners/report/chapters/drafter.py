"""Chapter Drafter: tables, sentences and glue values; "not measured here" where absent."""

import math

import pandas as pd

from runners.core.format import NOT_MEASURED as MISSING
from runners.drafter.published_results import AIM_LENGTH, AIM_SPEED_UP


def quoted(
    told: dict,
    text: pd.DataFrame,
    replay: pd.DataFrame,
    slots: pd.DataFrame,
    scaling: pd.DataFrame,
    aim: pd.DataFrame,
) -> dict[str, str]:
    """Keys of the drafter notebook."""
    keys = (
        "doubling",
        "aim",
        "answers",
        "answer_tokens",
        "train_tokens",
        "minutes",
        "top1",
        "held_out_accept_length",
        "parameters",
    )
    found = dict.fromkeys((f"drafter_{k}" for k in (*keys, "replay_worst", "slots_host", "slots_graph")), MISSING)
    if len(text):
        found["drafter_answers"] = f"{text['answers'].sum():,}"
        found["drafter_answer_tokens"] = f"{text['answer tokens'].sum():,}"
    if told["history"]:
        last, facts = told["history"][-1], told["facts"]
        found["drafter_train_tokens"] = f"{facts['train_tokens']:,}"
        found["drafter_parameters"] = f"{facts['parameters'] / 1e6:.1f} million"
        found["drafter_minutes"] = f"{last['seconds'] / 60:.0f}"
        found["drafter_top1"] = ", ".join(f"{x:.0%}" for x in last["top1"])
        found["drafter_held_out_accept_length"] = f"{last['accept_length']:.2f}"
    if len(replay):
        found["drafter_replay_worst"] = f"{100 * replay['difference'].abs().max():.1f}%"
    if len(scaling) > 1:
        found["drafter_doubling"] = f"{_a_doubling(scaling):+.2f}"
    if len(aim):
        best = aim.sort_values("speed_up").iloc[-1]
        found["drafter_aim"] = f"{best['speed_up']:.2f}x on {best['workload']} by {best['configuration']}"
    for where in ("host", "graph"):
        rows = slots[slots["draft_sampling"] == where].sort_values("concurrency")
        if len(rows):
            found[f"drafter_slots_{where}"] = ", ".join(f"{v:.2f}" for v in rows["served"])
    return found


def _a_doubling(scaling: pd.DataFrame) -> float:
    """Accept length that the last doubling of the text brought, by the slope between the two largest sizes."""
    a, b = scaling.sort_values("train_tokens").iloc[-2:].itertuples(index=False)
    return (b.accept_length - a.accept_length) / math.log2(b.train_tokens / a.train_tokens)


def scaling_sentence(q: dict[str, str]) -> str:
    if q["drafter_doubling"] == MISSING:
        return f"Scaling with data: {MISSING}."
    return (
        f"**At the largest size, doubling the text changes the held-out accept length by {q['drafter_doubling']}.** "
        "Steps and time grow with the text: every size is trained for the same number of epochs."
    )


def aim_shown(aim: pd.DataFrame) -> pd.DataFrame:
    """What the drafter reaches of its aim at C=1, and what it would take."""
    return pd.DataFrame(
        {
            "configuration": aim["configuration"],
            "workload": aim["workload"],
            "accept length": aim["accept_length"].round(2),
            "step-cost ratio r": aim["step_cost"].round(2),
            "decode speed-up": aim["speed_up"].round(2),
            "accept length needed at this r": aim["needs_length"].round(2),
            "r needed at this accept length": aim["needs_cost"].round(2),
            "falls short in": aim["short"],
        }
    )


def aim_sentence(q: dict[str, str]) -> str:
    if q["drafter_aim"] == MISSING:
        return f"The aim: {MISSING}."
    aimed = f"accept length {AIM_LENGTH:g} on chat, decoding {AIM_SPEED_UP:g} times as fast as base at C=1"
    return f"Aimed at: {aimed}. **The best at C=1: {q['drafter_aim']}.**"


def text_sentence(q: dict[str, str]) -> str:
    return f"**{q['drafter_answers']} answers, {q['drafter_answer_tokens']} answer tokens.**"


def training_sentence(q: dict[str, str]) -> str:
    return (
        f"**{q['drafter_parameters']} parameters, {q['drafter_train_tokens']} answer tokens, {q['drafter_minutes']} "
        f"minutes: held-out top-1 {q['drafter_top1']} over the draft steps, an accept length of "
        f"{q['drafter_held_out_accept_length']} from every position.**"
    )


def replay_sentence(q: dict[str, str]) -> str:
    if q["drafter_replay_worst"] == MISSING:
        return f"Replay against served: {MISSING}."
    return f"**Served and replayed accept lengths differ by {q['drafter_replay_worst']} at most.**"


def slots_sentence(q: dict[str, str]) -> str:
    if q["drafter_slots_graph"] == MISSING:
        return f"llama.cpp's slots: {MISSING}."
    return (
        f"**Served accept length with rising concurrency: {q['drafter_slots_graph']} sampled in the graph, "
        f"{q['drafter_slots_host']} on the host.**"
    )
