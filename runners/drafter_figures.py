"""Glue keys and sentences of the drafter and alignment chapters: finished text, "not measured here" where absent."""

import math

import pandas as pd

from runners.drafter_tables import AIM_LENGTH, AIM_SPEED_UP
from runners.tables import NOT_MEASURED as MISSING


def drafter(
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


def said_scaling(q: dict[str, str]) -> str:
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


def said_aim(q: dict[str, str]) -> str:
    if q["drafter_aim"] == MISSING:
        return f"The aim: {MISSING}."
    aimed = f"accept length {AIM_LENGTH:g} on chat, decoding {AIM_SPEED_UP:g} times as fast as base at C=1"
    return f"Aimed at: {aimed}. **The best at C=1: {q['drafter_aim']}.**"


def siblings_shown(siblings: pd.DataFrame) -> pd.DataFrame:
    """The sibling table as a reader sees it."""
    return pd.DataFrame(
        {
            "noise": siblings["noise"],
            "drift of the states": siblings["drift"].round(3),
            "same next token as the target": [f"{x:.0%}" for x in siblings["same_choice"]],
            "drafter's first guess right": [f"{x:.0%}" for x in siblings["agreement"]],
            "accept length, same text": siblings["same_text_accept_length"].round(2),
            "accept length, its own text": siblings["accept_length"].round(2),
            "trigrams repeated in its own text": [f"{x:.0%}" for x in siblings["repeated"]],
        }
    )


def said_siblings(q: dict[str, str]) -> str:
    if q["alignment_sibling_tenth"] == MISSING:
        return f"Siblings: {MISSING}."
    return (
        f"**On the same text, the accept length falls by a tenth of what it is above 1 at a drift of about "
        f"{q['alignment_sibling_tenth']}; INT4 kernels drift by {q['alignment_drift_int4']}.**"
    )


def _tenth(siblings: pd.DataFrame) -> float | None:
    """Drift at which the same-text accept length has lost a tenth of its gain, between the measured steps."""
    rows = siblings.sort_values("drift")
    gain = rows["same_text_accept_length"] - 1
    wanted = 0.9 * gain.iloc[0]
    for i in range(1, len(rows)):
        high, low = gain.iloc[i - 1], gain.iloc[i]
        if low <= wanted < high:
            a, b = rows["drift"].iloc[i - 1], rows["drift"].iloc[i]
            return a + (b - a) * (high - wanted) / (high - low)
    return None


def said_text(q: dict[str, str]) -> str:
    return f"**{q['drafter_answers']} answers, {q['drafter_answer_tokens']} answer tokens.**"


def said_training(q: dict[str, str]) -> str:
    return (
        f"**{q['drafter_parameters']} parameters, {q['drafter_train_tokens']} answer tokens, {q['drafter_minutes']} "
        f"minutes: held-out top-1 {q['drafter_top1']} over the draft steps, an accept length of "
        f"{q['drafter_held_out_accept_length']} from every position.**"
    )


def said_replay(q: dict[str, str]) -> str:
    if q["drafter_replay_worst"] == MISSING:
        return f"Replay against served: {MISSING}."
    return f"**Served and replayed accept lengths differ by {q['drafter_replay_worst']} at most.**"


def said_slots(q: dict[str, str]) -> str:
    if q["drafter_slots_graph"] == MISSING:
        return f"llama.cpp's slots: {MISSING}."
    return (
        f"**Served accept length with rising concurrency: {q['drafter_slots_graph']} sampled in the graph, "
        f"{q['drafter_slots_host']} on the host.**"
    )


def alignment(
    offsets: pd.DataFrame, drift: pd.DataFrame, causes: pd.DataFrame, siblings: pd.DataFrame
) -> dict[str, str]:
    """Keys of the alignment notebook."""
    keys = ("sibling_tenth", "offsets", "margin", "drift_int4", "drift_fp32", "to_next", "reads_one", "not_one")
    found = dict.fromkeys((f"alignment_{k}" for k in keys), MISSING)
    if len(offsets):
        found["alignment_offsets"] = ", ".join(f"{o:+d}" for o in sorted(set(offsets["offset"])))
        found["alignment_margin"] = f"{offsets['margin'].min():,.0f}"
    for source, key in (("llamacpp", "int4"), ("vllm", "fp32")):
        rows = drift[drift["source"] == source]
        if len(rows):
            found[f"alignment_drift_{key}"] = f"{rows['drift'].median():.2g}"
    if len(siblings) and _tenth(siblings) is not None:
        found["alignment_sibling_tenth"] = f"{_tenth(siblings):.2f}"
    if drift["to_next"].notna().any():
        found["alignment_to_next"] = f"{drift['to_next'].median():.2g}"
    if len(causes):
        read, not_read = [], []
        for cause, own in causes.groupby("cause", sort=False):
            where = list(own.loc[own["reads_one"], "configuration"])
            if where:
                read.append(cause if own["reads_one"].all() else f"{cause} (in {', '.join(where)} alone)")
            else:
                not_read.append(cause)
        found["alignment_reads_one"], found["alignment_not_one"] = ("; ".join(x) or "none" for x in (read, not_read))
    return found


def said_offsets(q: dict[str, str]) -> str:
    if q["alignment_offsets"] == MISSING:
        return f"Offsets: {MISSING}."
    return (
        f"**Offset between an engine's id and the boundary: {q['alignment_offsets']}. The nearest boundary is at least "
        f"{q['alignment_margin']} times nearer than the second.**"
    )


def said_drift(q: dict[str, str]) -> str:
    if q["alignment_drift_int4"] == MISSING:
        return f"Drift: {MISSING}."
    return (
        f"**Median relative drift: INT4 kernels {q['alignment_drift_int4']}, vLLM in float32 "
        f"{q['alignment_drift_fp32']}; the next layer is {q['alignment_to_next']} away.**"
    )


def said_causes(q: dict[str, str]) -> str:
    if q["alignment_reads_one"] == MISSING:
        return f"Causes: {MISSING}."
    return f"**Read 1.00: {q['alignment_reads_one']}. Did not: {q['alignment_not_one']}.**"


# Names that are right for a fault: a drafter that is well, or was made for another target, is at most weak; one trained
# a layer later is served a layer too early.
SAME_FAULT = {
    "as-trained": ("weak", "none"),
    "int4-states": ("weak", "none"),
    "sibling": ("weak",),
    "trained+1": ("boundary-1",),
    "trained-1": ("boundary+1",),
}


def confusion_shown(confusion: pd.DataFrame) -> pd.DataFrame:
    """The fault put in, the cause named first, and whether they are the same."""
    if confusion.empty:
        return confusion
    right = [n in SAME_FAULT.get(f, (f,)) for f, n in zip(confusion["fault"], confusion["named"], strict=True)]
    gains = ["" if pd.isna(g) else f"{g:.2f}" for g in confusion["gain"]]
    told = {"fault": confusion["fault"], "named first": confusion["named"], "undoing it gains": gains}
    return pd.DataFrame(told | {"right": ["yes" if r else "no" for r in right]})


def causes_shown(causes: pd.DataFrame) -> pd.DataFrame:
    """The hypothesis table as a reader sees it."""
    return pd.DataFrame(
        {
            "configuration": causes["configuration"],
            "cause": causes["cause"],
            "replayed": causes["accept_length_replayed"].round(2),
            "served": causes["accept_length_served"].round(2),
            "survival by position": [", ".join(f"{x:.2f}" for x in s) for s in causes["survival"]],
            "reads 1.00": ["yes" if x else "no" for x in causes["reads_one"]],
        }
    )
