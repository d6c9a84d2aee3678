"""Chapter Claims, checked: what is claimed of this machine, and what the case reported."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import reported as reported_figures
from runners.claims import check
from runners.claims.claim import Checked


@dataclass(frozen=True)
class Data:
    """What the chapter shows."""

    profile: str
    checked: list[Checked]  # every claim of data/claims.yaml with its status
    counts: dict[str, int]  # status -> how many of the claims about this profile
    case: pd.DataFrame  # reported, not measured


def load(runs: str | Path, profile: str) -> Data:
    """Check every claim on a profile's runs."""
    checked = check.of(runs, profile)
    return Data(profile, checked, check.counts(checked, profile), reported_figures.case())


def glue_values(counts: dict[str, int]) -> dict[str, str]:
    """The sentence that the book's first page quotes from this chapter."""
    return {"claims_sentence": claims_sentence(counts)}


def reported_table(checked: list[Checked]) -> pd.DataFrame:
    """The case's claims by finding, each beside the lab's measured twins."""
    columns = ["finding", "claim", "reported", "our check", "status", "measured twin in the lab"]
    by_id = {c.claim.id: c for c in checked}
    rows = []
    for c in sorted(checked, key=lambda c: c.claim.finding or 99):
        claim, reported = c.claim, c.claim.reported
        if reported is None:
            continue
        source = f"{reported.value} ({reported.source})"
        twins = "; ".join(f"{by_id[t].claim.statement} ({by_id[t].status})" for t in claim.twin)
        rows.append([claim.finding or "", claim.statement, source, c.working or claim.settles, c.status, twins])
    return pd.DataFrame(rows, columns=columns)


def measured_table(checked: list[Checked], profile: str) -> pd.DataFrame:
    """The claims about this profile's machine, each with the figures that its check used."""
    mine = [c for c in checked if c.claim.scope and c.claim.scope.profile == profile]
    rows = [{"claim": c.claim.statement, "with figures": c.working, "status": c.status} for c in mine]
    return pd.DataFrame(rows, columns=["claim", "with figures", "status"])


def claims_sentence(counts: dict[str, int]) -> str:
    """How many claims about this profile have each status."""
    if not sum(counts.values()):
        return "No claim is about this machine's profile."
    parts = [f"{n} {status}" for status, n in counts.items() if n]
    return f"{sum(counts.values())} claims about this machine: {', '.join(parts)}."
