"""Glue keys and sentences of the drafter and alignment chapters: finished text, "not measured here" where absent."""

import pandas as pd

from runners.tables import NOT_MEASURED as MISSING


def drafter(told: dict, text: pd.DataFrame, replay: pd.DataFrame, slots: pd.DataFrame) -> dict[str, str]:
    """Keys of the drafter notebook."""
    keys = ("answers", "answer_tokens", "train_tokens", "minutes", "top1", "held_out_accept_length", "parameters")
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
    for where in ("host", "graph"):
        rows = slots[slots["draft_sampling"] == where].sort_values("concurrency")
        if len(rows):
            found[f"drafter_slots_{where}"] = ", ".join(f"{v:.2f}" for v in rows["served"])
    return found


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


def alignment(offsets: pd.DataFrame, drift: pd.DataFrame, causes: pd.DataFrame) -> dict[str, str]:
    """Keys of the alignment notebook."""
    keys = ("offsets", "margin", "drift_int4", "drift_fp32", "to_next", "exactly_one", "not_one")
    found = dict.fromkeys((f"alignment_{k}" for k in keys), MISSING)
    if len(offsets):
        found["alignment_offsets"] = ", ".join(f"{o:+d}" for o in sorted(set(offsets["offset"])))
        found["alignment_margin"] = f"{offsets['margin'].min():,.0f}"
    for source, key in (("llamacpp", "int4"), ("vllm", "fp32")):
        rows = drift[drift["source"] == source]
        if len(rows):
            found[f"alignment_drift_{key}"] = f"{rows['drift'].median():.2g}"
    if drift["to_next"].notna().any():
        found["alignment_to_next"] = f"{drift['to_next'].median():.2g}"
    if len(causes):
        for yes, key in ((True, "exactly_one"), (False, "not_one")):
            named = list(dict.fromkeys(causes.loc[causes["explains_exactly_one"] == yes, "cause"]))
            found[f"alignment_{key}"] = "; ".join(named) or "none"
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
    if q["alignment_exactly_one"] == MISSING:
        return f"Causes: {MISSING}."
    return f"**Read exactly 1.00: {q['alignment_exactly_one']}. Did not: {q['alignment_not_one']}.**"


def confusion_shown(confusion: pd.DataFrame) -> pd.DataFrame:
    """The fault put in, the cause named first, and whether they are the same."""
    if confusion.empty:
        return confusion
    healthy = {"as-trained": ("weak", "none")}
    right = [n in healthy.get(f, (f,)) for f, n in zip(confusion["fault"], confusion["named"], strict=True)]
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
            "explains 1.00": ["yes" if x else "no" for x in causes["explains_exactly_one"]],
        }
    )
