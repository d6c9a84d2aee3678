"""Check every claim of data/claims.yaml against what was reported and what was measured.

A reported claim is checked by arithmetic on the reported figures: if the check holds, its status is `consistent` or
`corrected`, as the claim `says`; if not, it does not follow. A measured claim is checked on this machine's runs. It is
reproduced, not reproduced, void (its cells failed their gates) or not measured here.
"""

from pathlib import Path

from runners.claims import expressions, named_values
from runners.claims.claim import (
    CLAIMS,
    DOES_NOT_FOLLOW,
    NOT_REPRODUCED,
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
    """Every claim with its status.

    UserError for a check that is not an expression, or for a reported claim that needs a figure which no file holds.
    """
    return [_one(claim, profile, figures) for claim in claims]


def _one(claim: Claim, profile: str, figures: named_values.NamedValues) -> Checked:
    if claim.check is None or (claim.scope and claim.scope.profile != profile):
        return Checked(claim, NOT_MEASURED)
    try:
        holds, working = expressions.evaluate(claim.check, figures)
    except named_values.Void:
        return Checked(claim, VOID)
    except named_values.Missing as missing:
        if claim.reported:  # reported figures are files of the repository, so a missing one is a typing error
            raise UserError(
                f"{CLAIMS.name}: claim `{claim.id}` needs {missing}, which no file in data/reported holds; "
                "correct the name in its `check`."
            ) from missing
        return Checked(claim, NOT_MEASURED)
    except (expressions.NotAnExpression, ZeroDivisionError) as error:
        raise UserError(f"{CLAIMS.name}: claim `{claim.id}`: {error}.") from error
    if claim.reported:
        # `says` goes with the check of a reported claim (claim.py).
        return Checked(claim, (claim.says or "") if holds else DOES_NOT_FOLLOW, working)
    return Checked(claim, REPRODUCED if holds else NOT_REPRODUCED, working)


def of(runs: str | Path, profile: str) -> list[Checked]:
    """Every claim of data/claims.yaml with its status on a profile's runs."""
    found = load_if_known(profile)
    if found is not None and found.simulated:
        # No figure of a stand-in may enter a claim, not even a claim about its own profile.
        return check(load(), "", named_values.NamedValues(named_values.reported()))
    return check(load(), profile, named_values.of(runs, profile))


def counts(checked: list[Checked], profile: str) -> dict[str, int]:
    """How many of the claims about this profile have each status."""
    mine = [c.status for c in checked if c.claim.scope and c.claim.scope.profile == profile]
    return {status: mine.count(status) for status in STATUSES}
