"""A claim as data (data/claims.yaml): what it states, what it is about, how it is checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from runners.claims import expressions
from runners.core import files, paths
from runners.core.format import NOT_MEASURED
from runners.core.validation import validated
from runners.profiles.strict import Strict

CLAIMS = paths.DATA / "claims.yaml"
REPRODUCED, NOT_REPRODUCED, VOID = "reproduced", "not reproduced", "void"
DOES_NOT_FOLLOW = "does not follow"
STATUSES = (REPRODUCED, NOT_REPRODUCED, VOID, NOT_MEASURED)


class Reported(Strict):
    """What somebody else stated, and where they stated it."""

    value: str
    source: str  # a file of data/reported/ or a key of book/references.bib


class Scope(Strict):
    """What a measured claim is about."""

    profile: str
    configuration: str | None = None
    workload: str | None = None


class Claim(Strict):
    """One assertion of the report: reported by others (`reported`) or measured here (`scope`)."""

    id: str
    statement: str
    finding: int | None = None  # of the case, 1 to 6; 0: what a careful reader adds
    reported: Reported | None = None
    says: Literal["consistent", "corrected"] | None = None  # the status of a reported claim whose check holds
    scope: Scope | None = None
    check: str | None = None  # an expression over named_values.py's names
    settles: str = ""  # what would settle it, where it cannot be checked here
    twin: list[str] = []  # ids of claims about the same thing, one reported and the others measured

    @model_validator(mode="after")
    def one_kind(self) -> "Claim":
        if (self.reported is None) == (self.scope is None):
            raise ValueError(f"claim `{self.id}`: give exactly one of `reported` and `scope`")
        if self.reported and (self.check is None) != (self.says is None):
            raise ValueError(f"claim `{self.id}`: a reported claim needs both `check` and `says`, or neither")
        if self.scope and not self.check:
            raise ValueError(f"claim `{self.id}`: a measured claim needs a `check`")
        for name in expressions.names(self.check or ""):
            if self.reported and name.startswith(("run.", "sweep.")):
                raise ValueError(
                    f"claim `{self.id}`: {name} is measured here; the check of a reported claim may use reported "
                    "figures only"
                )
        return self


class File(Strict):
    """data/claims.yaml."""

    schema_version: Literal[1]
    claims: list[Claim]

    @model_validator(mode="after")
    def ids_meet(self) -> "File":
        known = [c.id for c in self.claims]
        twice = {i for i in known if known.count(i) > 1}
        if twice:
            raise ValueError(f"claim `{sorted(twice)[0]}` is there twice; ids must be unique")
        for claim in self.claims:
            for twin in claim.twin:
                if twin not in known:
                    raise ValueError(f"claim `{claim.id}`: twin `{twin}` is not the id of a claim")
        return self


@dataclass(frozen=True)
class Checked:
    """A claim with its status. `working`: the check with figures in place of names; "" where nothing was checked."""

    claim: Claim
    status: str
    working: str = ""


def load(file: Path = CLAIMS) -> list[Claim]:
    """The claims of a file; UserError that names the file and its first mistake."""
    return validated(File, files.read_yaml(file, file.name), file.name).claims
