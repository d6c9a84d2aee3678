"""Check every claim of data/claims.yaml against what was reported and what was measured.

A *finding* is tested only by what was measured after it was written down: each cell (and each row of `specverdict
align`) that began before `written.date` is left out, on both sides of a ratio. It is reproduced, not reproduced or
undecided there. It is "not tested yet" where only earlier measurements, or ones of unknown date, have its figures; void
where its later cells failed their gates; not measured here where no cell has its figures. *Invariants* and
*definitions* are checked on everything, held or broken, and counted apart.

A reported claim is checked by arithmetic on the reported figures: if the check holds, its status is `consistent` or
`corrected`, as the claim `says`; if not, it does not follow.
"""

import datetime
from collections.abc import Callable
from pathlib import Path

from runners.claims import expressions, named_values
from runners.claims.claim import (
    BROKEN,
    CLAIMS,
    DOES_NOT_FOLLOW,
    FINDING,
    HELD,
    NOT_REPRODUCED,
    NOT_TESTED,
    REPRODUCED,
    STATUSES,
    UNDECIDED,
    VOID,
    Checked,
    Claim,
    load,
)
from runners.core.errors import UserError
from runners.core.format import NOT_MEASURED
from runners.core.remember import remembered
from runners.profiles.load import load_if_known

# The values of these names, from what was measured after a date; from everything for None.
Since = Callable[[datetime.datetime | None, list[str]], named_values.NamedValues]


def check(claims: list[Claim], profile: str, since: Since) -> list[Checked]:
    """Every claim with its status.

    UserError for a check that is not an expression, or for a reported claim that needs a figure which no file holds.
    """
    return [_one(claim, profile, since) for claim in claims]


def _one(claim: Claim, profile: str, since: Since) -> Checked:
    if claim.check is None or (claim.scope and claim.scope.profile != profile):
        return Checked(claim, NOT_MEASURED)
    names = expressions.names(claim.check)
    if claim.kind != FINDING or claim.written is None:
        return _status(claim, since(None, names))
    later = _status(claim, since(claim.written.date, names))
    if later.status != NOT_MEASURED:
        return later
    earlier = _status(claim, since(None, names))
    return later if earlier.status == NOT_MEASURED else Checked(claim, NOT_TESTED)


def _status(claim: Claim, figures: named_values.NamedValues) -> Checked:
    assert claim.check is not None
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
    yes, no = (REPRODUCED, NOT_REPRODUCED) if claim.kind == FINDING else (HELD, BROKEN)
    measured = figures.last_measured(expressions.names(claim.check))
    return Checked(claim, UNDECIDED if holds is None else yes if holds else no, working, measured)


@remembered
def of(runs: str | Path, profile: str) -> list[Checked]:
    """Every claim of data/claims.yaml with its status on a profile's runs."""
    found = load_if_known(profile)
    if found is not None and found.simulated:
        # No figure of a stand-in may enter a claim, not even a claim about its own profile.
        only_reported = named_values.NamedValues(named_values.reported())
        return check(load(), "", lambda date, names: only_reported)
    return check(load(), profile, named_values.Runs(runs, profile).since)


def counts(checked: list[Checked], profile: str) -> dict[str, dict[str, int]]:
    """kind -> how many of the claims about this profile have each status."""
    mine: list[tuple[str, str]] = [
        (c.claim.kind, c.status) for c in checked if c.claim.scope and c.claim.scope.profile == profile
    ]
    return {kind: {status: mine.count((kind, status)) for status in statuses} for kind, statuses in STATUSES.items()}
