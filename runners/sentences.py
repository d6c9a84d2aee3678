"""Sentences that the notebooks show beside their tables, made from data so that none can go stale."""

import pandas as pd
from IPython.display import Markdown

from runners import tables
from runners.intervals import WITHIN_RUN
from runners.reasons import NO, YES

MISSING = tables.NOT_MEASURED


def listed(names) -> str:
    """Names with commas between; "none" if there is none."""
    return ", ".join(str(n) for n in names) or "none"


def measured(quoted: dict[str, str]) -> str:
    """How much was measured."""
    return (
        f"{quoted['configurations_measured']} of {quoted['configurations_planned']} configurations "
        "were measured: "
        f"{quoted['cells_ok']} cells count and {quoted['cells_void']} are void. The cells that count hold "
        f"{quoted['requests_total']} requests with {quoted['output_tokens_total']} output tokens "
        f"(workloads: {quoted['workloads']}; C: {quoted['concurrencies']})."
    )


def reported_engines(quoted: dict[str, str]) -> str:
    """The engine-against-engine ratios of the reported table."""
    return (
        "From these figures SGLang without speculation is "
        f"{quoted['reported_sglang_over_vllm_c128_percent']} ahead of vLLM at C=128, and vLLM "
        f"{quoted['reported_vllm_over_sglang_c1_percent']} ahead of SGLang on a single stream."
    )


def intervals(quoted: dict[str, str]) -> str:
    """What was resampled."""
    if quoted["interval_unit"] == MISSING:
        return f"Intervals: {MISSING}."
    return (
        f"Resampled here: **{quoted['interval_unit']}**, at a level of {quoted['interval_level']}. "
        f"Repeats a point: {quoted['repeats']}."
    )


def absent(statuses: pd.DataFrame) -> str:
    """Which configurations were not measured, with the reasons."""
    rows = statuses[statuses.status == MISSING]
    if rows.empty:
        return "Every configuration of the profile was measured."
    told = "; ".join(f"`{r.configuration}` ({r.reason.rstrip('.')})" for r in rows.itertuples())
    return f"{MISSING.capitalize()}: {told}."


def floor(quoted: dict[str, str]) -> str:
    """The floor of the old rate, at the case's number of draft tokens."""
    return (
        f"With D = {quoted['floor_draft_tokens']} and nothing accepted the accept length is "
        f"{quoted['floor_accept_length']}; the old rate prints {quoted['floor_rate_old']} for it and the "
        f"new one {quoted['floor_rate_new']}. So a printed {quoted['floor_rate_old']} is the floor of the "
        "old scale, and says that no drafted token was kept."
    )


def ngram(quoted: dict[str, str]) -> str:
    """The n-gram point that gains most a step, under both ways of counting."""
    if quoted["ngram_best_configuration"] == MISSING:
        return f"N-gram speculation: {MISSING}."
    return (
        f"Most tokens per decode step with n-gram: {quoted['ngram_best_tokens_per_step']} "
        f"(`{quoted['ngram_best_configuration']}`, {quoted['ngram_best_workload']}), with a draft at "
        f"{quoted['ngram_best_drafted_share']} of the steps. Counting only those, the accept length "
        f"would read {quoted['ngram_best_accept_length']}."
    )


def control(quoted: dict[str, str]) -> str:
    """Where the controls stand."""
    if quoted["control_steps"] == MISSING:
        return f"A drafter of which nothing is accepted: {MISSING}."
    return (
        f"{quoted['control_configurations']}: {quoted['control_accepted']} of {quoted['control_drafted']} "
        f"drafted tokens accepted over {quoted['control_steps']} steps. Accept length "
        f"{quoted['control_accept_length']}, old rate {quoted['control_rate_old']}, "
        f"new rate {quoted['control_rate_new']}."
    )


def serve(quoted: dict[str, str]) -> str:
    """What `make serve` starts."""
    if quoted["serve_configuration"] == MISSING:
        return f"What `make serve` would start: {MISSING}."
    return f"`make serve` starts `{quoted['serve_configuration']}`, the throughput choice."


def reported_break_even(quoted: dict[str, str]) -> str:
    """The reported drafters against their break-even on a single stream."""
    parts = [
        f"the {name} drafter had an accept length of {quoted[f'reported_accept_length_{slug}']} "
        f"where a single stream needed {quoted[f'reported_r_c1_{slug}']}"
        for name, slug in (
            ("third-party", "sglang_eagle3_aq_medai"),
            ("own", "sglang_eagle3_own"),
        )
        if f"reported_r_c1_{slug}" in quoted
    ]
    text = ", and ".join(parts) or f"the drafters' figures: {MISSING}"
    return text[0].upper() + text[1:] + "."


def verdict(found: dict) -> str:
    """The verdict in one sentence."""
    parts = []
    for use, name in (("single_stream", "For a single stream"), ("throughput", "for throughput")):
        best = found["uses"][use]
        if not best:
            parts.append(f"{name}: {MISSING}")
            continue
        at = "" if use == "single_stream" else f" at C={best['concurrency']}"
        second = best["runner_up"]
        doubt = "" if best["clear"] or not second else f", not clearly ahead of {second['configuration']}"
        parts.append(f"{name} serve {best['configuration']}{at} ({best['value']:,.1f} tok/s{doubt})")
    return "; ".join(parts) + "."


def pays(found: dict) -> str:
    """At how many points speculation pays, and with which configurations."""
    points = [p for p in found["points"] if p["workload"] != "all" and p["speed_up"] is not None]
    if not points:
        return f"Whether speculation pays: {MISSING}."
    count = {a: sum(p["pays"] == a for p in points) for a in (YES, NO)}
    where = listed(dict.fromkeys(p["configuration"] for p in points if p["pays"] == YES))
    gains = f"pays at {count[YES]}" + (f" ({where})" if count[YES] else "")
    rest = len(points) - count[YES] - count[NO]
    tail = f"loses at {count[NO]} and makes no clear difference at {rest}"
    note = " One run a point: these intervals hold no run-to-run variation." if found["unit"] == WITHIN_RUN else ""
    return f"Of {len(points)} measured points speculation {gains}, {tail}.{note}"


def reported_best(case: pd.DataFrame) -> str:
    """The case's own choice: the fastest reported row on a single stream and at C=128."""
    single = case.loc[case.single_stream_tok_s.idxmax()]
    many = case.loc[case.c128_tok_s.idxmax()]
    return (
        f"In the reported figures `{single.configuration}` has the fastest single stream "
        f"({single.single_stream_tok_s:,.1f} tok/s) and `{many.configuration}` the highest throughput "
        f"at C=128 ({many.c128_tok_s:,.0f} tok/s)."
    )


def shown(frame: pd.DataFrame, *index: str, empty: str = f"{MISSING.capitalize()}.") -> pd.DataFrame | Markdown:
    """A table under its row names, or a sentence in its place: an empty frame tells a reader nothing."""
    return frame.set_index(list(index)) if len(frame) else Markdown(empty)
