"""Chapter Alignment: tables, sentences and glue values."""

import pandas as pd

from runners.core.format import NOT_MEASURED as MISSING
from runners.drafter.faults import SAME_FAULT
from runners.engines.registry import all_engines


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


def target_drift_sentence(q: dict[str, str]) -> str:
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


def quoted(offsets: pd.DataFrame, drift: pd.DataFrame, causes: pd.DataFrame, siblings: pd.DataFrame) -> dict[str, str]:
    """Keys of the alignment notebook."""
    keys = ("sibling_tenth", "offsets", "margin", "drift_int4", "drift_fp32", "to_next", "reads_one", "not_one")
    found = dict.fromkeys((f"alignment_{k}" for k in keys), MISSING)
    if len(offsets):
        found["alignment_offsets"] = ", ".join(f"{o:+d}" for o in sorted(set(offsets["offset"])))
        found["alignment_margin"] = f"{offsets['margin'].min():,.0f}"
    rounding = [e.name for e in all_engines().values() if e.rounds_activations]
    for rounds, key in ((True, "int4"), (False, "fp32")):
        rows = drift[drift["source"].isin(rounding) == rounds]
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


def offsets_sentence(q: dict[str, str]) -> str:
    if q["alignment_offsets"] == MISSING:
        return f"Offsets: {MISSING}."
    return (
        f"**Offset between an engine's id and the boundary: {q['alignment_offsets']}. The nearest boundary is at least "
        f"{q['alignment_margin']} times nearer than the second.**"
    )


def drift_sentence(q: dict[str, str]) -> str:
    if q["alignment_drift_int4"] == MISSING:
        return f"Drift: {MISSING}."
    return (
        f"**Median relative drift: INT4 kernels {q['alignment_drift_int4']}, vLLM in float32 "
        f"{q['alignment_drift_fp32']}; the next layer is {q['alignment_to_next']} away.**"
    )


def faults_sentence(q: dict[str, str]) -> str:
    if q["alignment_reads_one"] == MISSING:
        return f"Causes: {MISSING}."
    return f"**Read 1.00: {q['alignment_reads_one']}. Did not: {q['alignment_not_one']}.**"


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
