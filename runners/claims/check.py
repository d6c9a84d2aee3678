"""data/claims.yaml: every assertion of the report as data, checked against what was reported and what was measured.

A claim of the case is checked by arithmetic on the reported figures; what follows is `consistent` or `corrected`, as
its author wrote, if the check holds. A claim of the lab is checked on this machine's runs: reproduced, not reproduced,
void (its cells failed their gates) or not measured here. `twin` sets a measured claim beside a reported one.
"""

from pathlib import Path

from runners.claims import expressions, named_values
from runners.claims.claim import (
    DOES_NOT_FOLLOW,
    NOT_REPRODUCED,
    PLACE,
    REPRODUCED,
    STATUSES,
    VOID,
    Checked,
    Claim,
    load,
)
from runners.core.errors import UserError
from runners.core.format import NOT_MEASURED
from runners.profiles.load import load_if_known


def check(claims: list[Claim], profile: str, figures: named_values.NamedValues) -> list[Checked]:
    """Every claim with its status. Raises UserError for a check that cannot be read or asks for an unknown kind."""
    return [_one(claim, profile, figures) for claim in claims]


def _one(claim: Claim, profile: str, figures: named_values.NamedValues) -> Checked:
    if claim.check is None or (claim.scope and claim.scope.profile != profile):
        return Checked(claim, NOT_MEASURED)
    try:
        holds, working = expressions.evaluate(claim.check, figures)
    except named_values.Void:
        return Checked(claim, VOID)
    except named_values.Missing as missing:
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
    found = load_if_known(profile)
    if found is not None and found.simulated:
        # Nothing that a stand-in said may enter a claim, not even one about its own profile.
        return check(load(), "", named_values.NamedValues(named_values.reported_figures()))
    return check(load(), profile, named_values.of(runs, profile))


def counts(checked: list[Checked], profile: str) -> dict[str, int]:
    """How many of the claims about this profile have each status."""
    mine = [c.status for c in checked if c.claim.scope and c.claim.scope.profile == profile]
    return {status: mine.count(status) for status in STATUSES}
