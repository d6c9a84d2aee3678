"""Chapter Claims, checked: findings and the runs that test them, invariants, definitions, the case's own claims."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import reported as reported_figures
from runners.claims import check, reproduction
from runners.claims.claim import (
    DEFINITION,
    FINDING,
    HELD,
    INVARIANT,
    NOT_REPRODUCED,
    NOT_TESTED,
    REPRODUCED,
    UNDECIDED,
    VOID,
    Checked,
    Earlier,
)
from runners.core.format import NOT_MEASURED

Counts = dict[str, dict[str, int]]  # kind -> status -> how many
TESTED = (REPRODUCED, NOT_REPRODUCED, UNDECIDED, VOID)


@dataclass(frozen=True)
class Data:
    """What the chapter shows."""

    profile: str
    checked: list[Checked]  # every claim of data/claims.yaml with its status on these runs
    others: dict[str, list[Checked]]  # name of another set of runs -> the same on them
    counts: Counts
    case: pd.DataFrame  # reported, not measured


def load(runs: str | Path, profile: str) -> Data:
    """Check every claim on a profile's runs, and on each other set of runs of that profile."""
    checked = check.of(runs, profile)
    others = {side.name: check.of(side.runs, profile) for side in reproduction.sides(runs, profile)[1:]}
    return Data(profile, checked, others, check.counts(checked, profile), reported_figures.case())


def glue_values(counts: Counts) -> dict[str, str]:
    """The sentence that the book's first page quotes from this chapter."""
    return {"claims_sentence": claims_sentence(counts)}


def claims_sentence(counts: Counts) -> str:
    """How many claims about this profile have each status: findings first, the other kinds apart."""
    total = {kind: sum(numbers.values()) for kind, numbers in counts.items()}
    if not sum(total.values()):
        return "No claim is about this machine's profile."
    parts = ", ".join(f"{n} {status}" for status, n in counts[FINDING].items() if n) or "none"
    many = "finding" if total[FINDING] == 1 else "findings"
    held = f"{_held(counts[INVARIANT], 'invariants of the tool')} {_held(counts[DEFINITION], 'definitions')}".strip()
    return (
        f"{total[FINDING]} {many}, each tested only by what was measured after it was written down: {parts}. {held}"
    ).strip()


def _held(counts: dict[str, int], kind: str) -> str:
    """How many of those that could be checked held; "" where there is no claim of this kind."""
    tried = sum(n for status, n in counts.items() if status != NOT_MEASURED)
    if tried:
        return f"{counts.get(HELD, 0)} of {tried} {kind} held."
    return f"Of the {kind} none could be checked here." if any(counts.values()) else ""


def findings_table(data: Data) -> pd.DataFrame:
    """The findings about this profile's machine: when written, the tests by runs taken since, and the figures here."""
    tests = _tests(data)
    rows = []
    for c in _mine(data, FINDING):
        written = f"{c.claim.written.date:%Y-%m-%d %H:%M}" if c.claim.written else ""
        since = "; ".join(tests[c.claim.id]) or (c.status if c.status == NOT_TESTED else "none")
        rows.append([c.claim.statement, written, c.status, since, c.working])
    return pd.DataFrame(rows, columns=["finding", "written (UTC)", "these runs", "tests since", "with figures"])


def _tests(data: Data) -> dict[str, list[str]]:
    """Claim -> its tests, oldest first: the day of the last cell, the set of runs and the outcome."""
    found: dict[str, list[tuple[str, str]]] = {c.claim.id: [] for c in data.checked}
    for c in data.checked:
        found[c.claim.id] += [
            (f"{r.date:%Y-%m-%d}", f"runs since replaced: {r.outcome}") for r in c.claim.replaced_runs
        ]
    for name, checked in ({reproduction.HERE: data.checked} | data.others).items():
        for c in checked:
            if c.status in TESTED:
                day = f"{c.measured:%Y-%m-%d}" if c.measured else ""
                found[c.claim.id].append((day, f"{name}: {c.status}"))
    return {name: [" ".join(test).strip() for test in sorted(tests)] for name, tests in found.items()}


def history_table(data: Data) -> pd.DataFrame:
    """What findings said before they were changed. Checks that only became stricter are in data/claims.yaml."""
    rows = [
        [e.statement or c.claim.statement, f"{e.date:%Y-%m-%d %H:%M}", f"{e.change}: {e.why}", c.claim.statement]
        for c in _mine(data, FINDING)
        for e in _changed(c)
    ]
    return pd.DataFrame(rows, columns=["earlier", "written (UTC)", "what happened", "now"])


def _changed(checked: Checked) -> list[Earlier]:
    return [e for e in checked.claim.history if e.change != "stricter"]


def others_table(data: Data, kind: str) -> pd.DataFrame:
    """Invariants or definitions, each with the figures that its check used."""
    rows = [[c.claim.statement, c.working, c.status] for c in _mine(data, kind)]
    return pd.DataFrame(rows, columns=[kind, "with figures", "status"])


def _mine(data: Data, kind: str) -> list[Checked]:
    return [c for c in data.checked if c.claim.kind == kind and c.claim.scope and c.claim.scope.profile == data.profile]


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
