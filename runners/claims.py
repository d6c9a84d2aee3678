"""data/claims.yaml: every assertion of the report as data, checked against what was reported and what was measured.

A claim of the case is checked by arithmetic on the reported figures; what follows is `consistent` or `corrected`, as
its author wrote, if the check holds. A claim of the lab is checked on this machine's runs: reproduced, not reproduced,
void (its cells failed their gates) or not measured here. `twin` sets a measured claim beside a reported one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import ValidationError, model_validator

from runners import expressions, inputs, metrics, paths
from runners.errors import UserError
from runners.profile_parts import Strict
from runners.tables import NOT_MEASURED, plan

PLACE = paths.DATA / "claims.yaml"
REPRODUCED, NOT_REPRODUCED, VOID = "reproduced", "not reproduced", "void"
DOES_NOT_FOLLOW = "does not follow"
STATUSES = (REPRODUCED, NOT_REPRODUCED, VOID, NOT_MEASURED)


class Reported(Strict):
    """What somebody else stated, and where."""

    value: str
    source: str  # a file of data/reported/ or a key of book/references.bib


class Scope(Strict):
    """What a measured claim is about."""

    profile: str
    configuration: str | None = None
    workload: str | None = None


class Claim(Strict):
    id: str
    statement: str
    finding: int | None = None  # of the case, 1 to 6; 0: what a careful reader adds
    reported: Reported | None = None
    says: Literal["consistent", "corrected"] | None = None  # of a reported claim whose check holds
    scope: Scope | None = None  # of a measured claim
    check: str | None = None
    settles: str = ""  # what would settle it, where it cannot be checked here
    twin: list[str] = []

    @model_validator(mode="after")
    def one_kind(self) -> "Claim":
        if (self.reported is None) == (self.scope is None):
            raise ValueError(f"claim `{self.id}`: give exactly one of `reported` and `scope`")
        if self.reported and (self.check is None) != (self.says is None):
            raise ValueError(f"claim `{self.id}`: `says` goes with the `check` of a reported claim, and only with it")
        if self.scope and not self.check:
            raise ValueError(f"claim `{self.id}`: a measured claim needs a `check`")
        for name in expressions.names(self.check or ""):
            if self.reported and name.startswith(("run.", "sweep.")):
                raise ValueError(
                    f"claim `{self.id}`: {name} is measured; a reported claim is checked on reported figures"
                )
        return self


class File(Strict):
    schema_version: Literal[1]
    claims: list[Claim]

    @model_validator(mode="after")
    def ids_meet(self) -> "File":
        known = [c.id for c in self.claims]
        twice = {i for i in known if known.count(i) > 1}
        if twice:
            raise ValueError(f"claim `{sorted(twice)[0]}` stands twice")
        for claim in self.claims:
            for twin in claim.twin:
                if twin not in known:
                    raise ValueError(f"claim `{claim.id}`: twin `{twin}` is none of the claims")
        return self


@dataclass(frozen=True)
class Checked:
    """A claim with its outcome. `working`: the check with figures in place of names; "" where nothing was checked."""

    claim: Claim
    status: str
    working: str = ""


def load(place: Path = PLACE) -> list[Claim]:
    """UserError that names the file and the first fault."""
    content = inputs.read_yaml(place, str(place.name))
    try:
        return File.model_validate(content).claims
    except ValidationError as error:
        raise UserError(f"{place.name}: {inputs.first_fault(error, File)}") from error


def check(claims: list[Claim], profile: str, figures: metrics.Metrics) -> list[Checked]:
    """Every claim with its status. Raises UserError for a check that cannot be read or asks for an unknown kind."""
    return [_one(claim, profile, figures) for claim in claims]


def _one(claim: Claim, profile: str, figures: metrics.Metrics) -> Checked:
    if claim.check is None or (claim.scope and claim.scope.profile != profile):
        return Checked(claim, NOT_MEASURED)
    try:
        holds, working = expressions.evaluate(claim.check, figures)
    except metrics.Void:
        return Checked(claim, VOID)
    except metrics.Missing as missing:
        if claim.reported:  # a reported figure is a file of the repository: its absence is a typing error
            raise UserError(f"{PLACE.name}: claim `{claim.id}` asks for {missing}, which no file tells.") from missing
        return Checked(claim, NOT_MEASURED)
    except (expressions.NotAnExpression, ZeroDivisionError) as error:
        raise UserError(f"{PLACE.name}: claim `{claim.id}`: {error}.") from error
    if claim.reported:
        return Checked(claim, claim.says if holds else DOES_NOT_FOLLOW, working)
    return Checked(claim, REPRODUCED if holds else NOT_REPRODUCED, working)


def of(runs: str | Path, profile: str) -> list[Checked]:
    """All claims checked against a profile's runs."""
    found = plan(profile)
    if found is not None and found.simulated:
        # Nothing that a stand-in said may enter a claim, not even one about its own profile.
        return check(load(), "", metrics.Metrics(metrics.reported_figures()))
    return check(load(), profile, metrics.of(runs, profile))


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


def counts(checked: list[Checked], profile: str) -> dict[str, int]:
    """How many of the claims about this profile have each status."""
    mine = [c.status for c in checked if c.claim.scope and c.claim.scope.profile == profile]
    return {status: mine.count(status) for status in STATUSES}


def said(found: dict[str, int]) -> str:
    """One sentence of the counts."""
    if not sum(found.values()):
        return "No claim is about this machine's profile."
    parts = [f"{n} {status}" for status, n in found.items() if n]
    return f"{sum(found.values())} claims about this machine: {', '.join(parts)}."
