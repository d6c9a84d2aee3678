"""Chapter Alignment: which layer a slot is, what INT4 does to the states, each fault served, and which are named."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.core.format import NOT_MEASURED
from runners.drafter import hidden_states, published_results, target_drift
from runners.drafter.faults import names_rightly
from runners.engines.registry import all_engines
from runners.report import borrowed


@dataclass(frozen=True)
class Data:
    """What the chapter shows, as `specverdict align` published it."""

    folder: Path  # <profile>/alignment
    slots: pd.DataFrame  # distance of each captured slot to every boundary of the reference
    offsets: pd.DataFrame  # the nearest boundary of each slot
    drift: pd.DataFrame  # distance from the reference by layer and source
    faults: pd.DataFrame  # accept length with each fault, served and replayed
    targets: pd.DataFrame  # one drafter on targets that drifted from its own
    confusion: pd.DataFrame  # the fault put in beside the fault named
    mark: str  # borrowed.Source

    @property
    def partly_accepted(self) -> pd.DataFrame:
        """The faults under which the target still accepts some tokens, the worst first."""
        rows = self.faults[~self.faults["reads_one"].astype(bool)]
        return rows.sort_values("accept_length_served", kind="stable")


def load(runs: str | Path, profile: str) -> Data:
    """Read a profile's files, or the published ones where it has none; frames are empty where nothing was measured."""
    source = borrowed.alignment(runs, profile)
    runs, profile = source.runs, source.profile
    slots = published_results.csv(runs, profile, "slots.csv", ["slot", "boundary", "distance", "source"])
    return Data(
        published_results.folder(runs, profile),
        slots,
        hidden_states.offsets_by_source(slots),
        published_results.csv(runs, profile, "drift.csv", ["source", "boundary", "drift", "to_next"]),
        published_results.faults(runs, profile),
        published_results.csv(runs, profile, target_drift.FILE, target_drift.COLUMNS),
        published_results.csv(runs, profile, "confusion.csv", ["fault", "named", "gain", "second"]),
        source.mark,
    )


def glue_values(drift: pd.DataFrame, mark: str = "") -> dict[str, str]:
    """The figures that pages of the book quote from this chapter. With a mark they are the published run's."""
    whose = " (published run)" if mark else ""
    return {
        "alignment_drift_int4": _median_text(drift[_rounds_activations(drift)]["drift"]) + whose,
        "alignment_to_next": _median_text(drift["to_next"]) + whose,
    }


def _rounds_activations(drift: pd.DataFrame) -> pd.Series:
    """Which rows come from an engine whose kernels round activations; the others compute in float32."""
    return drift["source"].isin([engine.name for engine in all_engines().values() if engine.rounds_activations])


def _median_text(values: pd.Series) -> str:
    return f"{values.median():.2g}" if values.notna().any() else NOT_MEASURED


def offsets_sentence(offsets: pd.DataFrame) -> str:
    """How far engines' layer ids are from the boundaries they mean, and how surely."""
    if offsets.empty:
        return f"Offsets: {NOT_MEASURED}."
    found = ", ".join(f"{o:+d}" for o in sorted(set(offsets["offset"])))
    return (
        f"**Offset between an engine's id and the boundary: {found}. The nearest boundary is at least "
        f"{offsets['margin'].min():,.0f} times nearer than the second.**"
    )


def drift_sentence(drift: pd.DataFrame) -> str:
    """How far INT4 kernels move the states, beside float32 and beside the next layer."""
    values = glue_values(drift)
    if values["alignment_drift_int4"] == NOT_MEASURED:
        return f"Drift: {NOT_MEASURED}."
    fp32 = _median_text(drift[~_rounds_activations(drift)]["drift"])
    return (
        f"**Median relative drift: INT4 kernels {values['alignment_drift_int4']}, vLLM in float32 {fp32}; the next "
        f"layer is {values['alignment_to_next']} away.**"
    )


def faults_sentence(faults: pd.DataFrame) -> str:
    """Which faults, served, read exactly 1.00 as the case's drafter did, and which did not."""
    if faults.empty:
        return f"Faults: {NOT_MEASURED}."
    read, not_read = [], []
    for fault, own in faults.groupby("what", sort=False):
        where = list(own.loc[own["reads_one"], "configuration"])
        if where:
            read.append(fault if own["reads_one"].all() else f"{fault} (in {', '.join(where)} alone)")
        else:
            not_read.append(fault)
    return f"**Read 1.00: {'; '.join(read) or 'none'}. Did not: {'; '.join(not_read) or 'none'}.**"


def target_drift_sentence(targets: pd.DataFrame, drift: pd.DataFrame) -> str:
    """At which drift of the target a drafter loses a tenth of its gain, beside what INT4 kernels drift by."""
    at = drift_that_costs_a_tenth(targets)
    if at is None:
        return f"Target drift: {NOT_MEASURED}."
    return (
        "**On the same text, the accept length falls by a tenth of what it is above 1 at a drift of about "
        f"{at:.2f}; INT4 kernels drift by {glue_values(drift)['alignment_drift_int4']}.**"
    )


def drift_that_costs_a_tenth(targets: pd.DataFrame) -> float | None:
    """The drift at which the same-text accept length has lost a tenth of its gain, on straight lines between steps.

    None where nothing was measured, or where no step lost as much.
    """
    if targets.empty:
        return None
    rows = targets.sort_values("drift")
    gain = rows["same_text_accept_length"] - 1
    wanted = 0.9 * gain.iloc[0]
    for i in range(1, len(rows)):
        high, low = gain.iloc[i - 1], gain.iloc[i]
        if low <= wanted < high:
            a, b = rows["drift"].iloc[i - 1], rows["drift"].iloc[i]
            return float(a + (b - a) * (high - wanted) / (high - low))
    return None


def faults_table(faults: pd.DataFrame) -> pd.DataFrame:
    """Each fault, replayed and served."""
    return pd.DataFrame(
        {
            "configuration": faults["configuration"],
            "fault": faults["what"],
            "replayed": faults["accept_length_replayed"].round(2),
            "served": faults["accept_length_served"].round(2),
            "survival by position": [", ".join(f"{x:.2f}" for x in s) for s in faults["survival"]],
            "reads 1.00": ["yes" if x else "no" for x in faults["reads_one"]],
        }
    )


def target_drift_table(targets: pd.DataFrame) -> pd.DataFrame:
    """One drafter on targets that were moved away from its own by more and more noise."""
    return pd.DataFrame(
        {
            "noise": targets["noise"],
            "drift of the states": targets["drift"].round(3),
            "same next token as the target": [f"{x:.0%}" for x in targets["same_choice"]],
            "drafter's first guess right": [f"{x:.0%}" for x in targets["agreement"]],
            "accept length, same text": targets["same_text_accept_length"].round(2),
            "accept length, its own text": targets["accept_length"].round(2),
            "trigrams repeated in its own text": [f"{x:.0%}" for x in targets["repeated"]],
        }
    )


def confusion_table(confusion: pd.DataFrame) -> pd.DataFrame:
    """The fault put in, the fault named first, and whether that is right."""
    right = [names_rightly(n, f) for f, n in zip(confusion["fault"], confusion["named"], strict=True)]
    return pd.DataFrame(
        {
            "fault": confusion["fault"],
            "named first": confusion["named"],
            "undoing it gains": ["" if pd.isna(g) else f"{g:.2f}" for g in confusion["gain"]],
            "right": ["yes" if r else "no" for r in right],
        }
    )
