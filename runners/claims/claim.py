"""A claim as data (data/claims.yaml): what it states, of what kind it is, how it is checked, what it said before."""

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, model_validator

from runners.claims import expressions
from runners.core import files, paths
from runners.core.format import NOT_MEASURED
from runners.core.validation import validated
from runners.profiles.strict import Strict

CLAIMS = paths.DATA / "claims.yaml"
DEFINITION, INVARIANT, FINDING = "definition", "invariant", "finding"
REPRODUCED, NOT_REPRODUCED, UNDECIDED, NOT_TESTED = "reproduced", "not reproduced", "undecided", "not tested yet"
HELD, BROKEN, VOID = "held", "broken", "void"
DOES_NOT_FOLLOW = "does not follow"
# A finding has one of these statuses, the other kinds one of those.
OF_FINDINGS = (REPRODUCED, NOT_REPRODUCED, UNDECIDED, NOT_TESTED, VOID, NOT_MEASURED)
OF_OTHERS = (HELD, BROKEN, UNDECIDED, VOID, NOT_MEASURED)
STATUSES = {FINDING: OF_FINDINGS, INVARIANT: OF_OTHERS, DEFINITION: OF_OTHERS}
# Figures that scatter from run to run. A finding compares them by their intervals.
NOISY = ("speed_up", "step_cost", "throughput", "stream", "_ms")

Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]


class Reported(Strict):
    """What somebody else stated, and where they stated it."""

    value: str
    source: str  # a file of data/reported/ or a key of book/references.bib


class Scope(Strict):
    """What a claim of this project is about."""

    profile: str
    configuration: str | None = None
    workload: str | None = None


class Written(Strict):
    """When a claim with its check was first written down: the commit and its time."""

    date: AwareDatetime
    commit: Commit


class Earlier(Strict):
    """What a claim said before, with the names that its check would have today."""

    date: AwareDatetime  # when this was written down
    commit: Commit
    # failed: a run refuted it. replaced: changed for another reason. stricter: what holds now implies what held then.
    change: Literal["failed", "replaced", "stricter"]
    why: str
    statement: str = ""  # where it differs from the later one
    check: str = ""


class ReplacedRun(Strict):
    """A test of the claim, by the check of that time, on runs that are no longer published."""

    date: AwareDatetime
    commit: Commit  # which published them
    outcome: Literal["reproduced", "not reproduced"]
    figures: str


class Claim(Strict):
    """One assertion of the report: reported by others (`reported`) or made by this project (`scope`)."""

    id: str
    kind: Literal["definition", "invariant", "finding"]
    statement: str
    finding: int | None = None  # of the case, 1 to 6; 0: what a careful reader adds
    reported: Reported | None = None
    says: Literal["consistent", "corrected"] | None = None  # the status of a reported claim whose check holds
    scope: Scope | None = None
    check: str | None = None  # an expression over named_values.py's names
    written: Written | None = None
    history: list[Earlier] = []  # oldest first
    replaced_runs: list[ReplacedRun] = []
    settles: str = ""  # what would settle it, where it cannot be checked here
    twin: list[str] = []  # ids of claims about the same thing, one reported and the others measured

    @model_validator(mode="after")
    def one_origin(self) -> "Claim":
        if (self.reported is None) == (self.scope is None):
            raise ValueError(f"claim `{self.id}`: give exactly one of `reported` and `scope`")
        if self.reported and (self.check is None) != (self.says is None):
            raise ValueError(f"claim `{self.id}`: a reported claim needs both `check` and `says`, or neither")
        if self.reported and self.kind != (DEFINITION if self.check else FINDING):
            raise ValueError(
                f"claim `{self.id}`: a reported claim with a `check` is arithmetic on reported figures (`kind: "
                "definition`), one without is a `finding` that nobody tested"
            )
        if self.scope and not self.check:
            raise ValueError(f"claim `{self.id}`: a claim with a `scope` needs a `check`")
        for name in expressions.names(self.check or ""):
            if self.reported and name.startswith(("run.", "sweep.")):
                raise ValueError(
                    f"claim `{self.id}`: {name} is measured here; the check of a reported claim may use reported "
                    "figures only"
                )
        return self

    @model_validator(mode="after")
    def a_finding_can_be_refuted(self) -> "Claim":
        if self.kind != FINDING or not self.scope or not self.check:
            return self
        if self.written is None:
            raise ValueError(
                f"claim `{self.id}`: a finding needs `written`, the date and commit of its statement with this check; "
                "only runs taken later test it"
            )
        for name in expressions.compared_as_points(self.check):
            if name.removesuffix("_lo").removesuffix("_hi").endswith(NOISY):
                raise ValueError(
                    f"claim `{self.id}`: {name} scatters from run to run; compare it by its interval, with above(x, y),"
                    " below(x, y) or equal(x, y, margin)"
                )
        return self

    @model_validator(mode="after")
    def history_is_in_order(self) -> "Claim":
        if self.history and self.written is None:
            raise ValueError(f"claim `{self.id}`: a claim with a `history` needs `written`")
        dates = [e.date for e in self.history]
        if dates != sorted(dates):
            raise ValueError(f"claim `{self.id}`: `history` must begin with the oldest entry")
        for entry in self.history:
            if not (entry.statement or entry.check):
                raise ValueError(f"claim `{self.id}`: an entry of `history` needs its `statement`, its `check` or both")
            # A claim that became stricter keeps its date. Any other change makes it a new claim.
            later = self.written is not None and self.written.date > entry.date
            if not later and entry.change != "stricter":
                raise ValueError(
                    f"claim `{self.id}`: what was {entry.change} is as new as what stands now; `written` must be later"
                )
        return self


class File(Strict):
    """data/claims.yaml."""

    schema_version: Literal[2]
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
    """A claim with its status. `working`: the check with figures in place of names; "" where nothing was checked.

    measured: when the last of those figures was measured; None where that is not known.
    """

    claim: Claim
    status: str
    working: str = ""
    measured: datetime.datetime | None = None


def load(file: Path = CLAIMS) -> list[Claim]:
    """The claims of a file; UserError that names the file and its first mistake."""
    return validated(File, files.read_yaml(file, file.name), file.name).claims
