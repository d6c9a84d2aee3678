"""Chapter Claims: tables and the sentence of counts."""

import pandas as pd

from runners.claims.claim import Checked


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


def claims_sentence(found: dict[str, int]) -> str:
    """One sentence of the counts."""
    if not sum(found.values()):
        return "No claim is about this machine's profile."
    parts = [f"{n} {status}" for status, n in found.items() if n]
    return f"{sum(found.values())} claims about this machine: {', '.join(parts)}."
