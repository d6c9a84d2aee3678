"""Chapter Claims, checked: what is claimed of this machine, and what the case reported."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import reported
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
    return Data(profile, checked, check.counts(checked, profile), reported.case())


def glue_values(counts: dict[str, int]) -> dict[str, str]:
    """The sentence that the book's first page quotes from this chapter."""
    return {"claims_sentence": claims_sentence(counts)}


def reported_table(checked: list[Checked]) -> pd.DataFrame:
    """The case's claims for reading, by finding, with their measured twins."""
    by_id = {c.claim.id: c for c in checked}
    rows = []
    for c in sorted((c for c in checked if c.claim.reported), key=lambda c: c.claim.finding or 99):
        twins = [f"{by_id[t].claim.statement} ({by_id[t].status})" for t in c.claim.twin]
        rows.append(
            {
                "finding": c.claim.finding or "",
                "claim": c.claim.statement,
                "reported": f"{c.claim.reported.value} ({c.claim.reported.source})",
                "our check": c.working or c.claim.settles,
                "status": c.status,
                "measured twin in the lab": "; ".join(twins),
            }
        )
    columns = ["finding", "claim", "reported", "our check", "status", "measured twin in the lab"]
    return pd.DataFrame(rows, columns=columns)


def measured_table(checked: list[Checked], profile: str) -> pd.DataFrame:
    """The claims about this profile's machine for reading."""
    mine = [c for c in checked if c.claim.scope and c.claim.scope.profile == profile]
    rows = [{"claim": c.claim.statement, "with figures": c.working, "status": c.status} for c in mine]
    return pd.DataFrame(rows, columns=["claim", "with figures", "status"])


def claims_sentence(counts: dict[str, int]) -> str:
    """How many claims about this profile have each status."""
    if not sum(counts.values()):
        return "No claim is about this machine's profile."
    parts = [f"{n} {status}" for status, n in counts.items() if n]
    return f"{sum(counts.values())} claims about this machine: {', '.join(parts)}."
