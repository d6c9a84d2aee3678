"""Which configuration `make serve` starts, from a verdict: the answer of a workload, or one for all of them."""

from collections.abc import Sequence

from runners.analyse.verdict.answers import MIX
from runners.analyse.verdict.choose import simplicity_of
from runners.core.errors import UserError
from runners.core.format import listed


def to_serve(verdict: dict, use: str, workload: str | None = None) -> tuple[str, str] | None:
    """(configuration, why in a sentence, or ""); None where the verdict has no answer for that use.

    workload: one of the verdict's, or the mix. Without one: the mix where the profile has one, else what all workloads
    agree on. Where they disagree it is the configuration that is not clearly behind in most of them, of several the
    simplest. UserError for a workload that the verdict does not know.
    """
    answers = [a for a in verdict["answers"] if a["use"] == use]
    if workload is not None:
        known = list(dict.fromkeys(a["workload"] for a in verdict["answers"]))
        if workload not in known:
            raise UserError(f"The verdict has no workload `{workload}`; it has: {listed(known)}.")
        answers = [a for a in answers if a["workload"] == workload]
    answers = [a for a in answers if a["serve"]]
    if not answers:
        return None
    mixed = [a for a in answers if a["workload"] == MIX]
    if mixed and workload is None:
        return mixed[0]["serve"], "It is the choice for the profile's mix of workloads."
    if len({a["serve"] for a in answers}) == 1:
        return answers[0]["serve"], ""
    return _for_most(answers)


def _for_most(answers: Sequence[dict]) -> tuple[str, str]:
    """The configuration for workloads that disagree, and the sentence that says so."""
    fits = {a["serve"]: [b["workload"] for b in answers if _is_among(a["serve"], b)] for a in answers}
    most = max(map(len, fits.values()))
    chosen = min((name for name in fits if len(fits[name]) == most), key=lambda name: _simplicity(name, answers))
    each = "; ".join(f"{a['workload']}: {a['serve']}" for a in answers)
    right = f"is the simplest choice that is right for {len(fits[chosen])} of {len(answers)} ({listed(fits[chosen])})"
    fit = "is clearly behind in none of them" if most == len(answers) else right
    advice = "`--workload NAME` (or `WORKLOAD=NAME`) follows one of them"
    return chosen, f"The workloads disagree ({each}): {chosen} {fit}; {advice}."


def _is_among(name: str, answer: dict) -> bool:
    return any(c["configuration"] == name for c in answer["among"])


def _simplicity(name: str, answers: Sequence[dict]) -> tuple[int, int]:
    own = next(a for a in answers if a["serve"] == name)
    return simplicity_of(own["method"], own["k"])
