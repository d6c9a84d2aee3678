"""Whether speculation pays at an accept length, where the step cost ratio r is known.

    decode speed-up = tokens per decode step / r

r comes from the person (`--r`) or from a profile's verdict. It holds for an engine, a method, K and a load, on one box.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

from runners.analyse.inference import NO, NO_DIFFERENCE, UNDECIDED, YES
from runners.analyse.step_cost import MARGIN
from runners.analyse.verdict import decide, store
from runners.core import paths
from runners.core.errors import UserError

WORDS = {
    YES: "speculation pays",
    NO: "speculation does not pay",
    NO_DIFFERENCE: "speculation makes no difference in practice",
    UNDECIDED: "whether speculation pays is undecided",
}


@dataclass(frozen=True)
class StepCost:
    """r with its interval (None where it is not known), the practical margin, and where r is from, in words.

    concurrency: requests at the same time for which it was measured; None for any. method: how that configuration
    drafts, where r is a profile's.
    """

    r: float
    lo: float | None
    hi: float | None
    margin: float
    source: str
    concurrency: int | None = None
    method: str | None = None


@dataclass(frozen=True)
class Pays:
    """The answer at one r. speed_up: of decoding; lo, hi: by r's interval, not by that of the accept length."""

    answer: str
    speed_up: float
    lo: float | None
    hi: float | None
    cost: StepCost

    @property
    def words(self) -> str:
        """The answer as half a sentence."""
        at = f"r = {self.cost.r:.2f} from {self.cost.source}"
        return f"{WORDS[self.answer]} (decode speed-up {self.speed_up:.2f} at {at})"


def judge(yields: float, cost: StepCost) -> Pays:
    """The answer for tokens per decode step `yields`."""
    speed_up = yields / cost.r
    if cost.lo is None or cost.hi is None:
        answer = NO_DIFFERENCE if abs(speed_up - 1) <= cost.margin else YES if speed_up > 1 else NO
        return Pays(answer, speed_up, None, None, cost)
    lo, hi = yields / cost.hi, yields / cost.lo
    if lo > 1:
        answer = YES
    elif hi < 1:
        answer = NO
    else:
        answer = NO_DIFFERENCE if 1 - cost.margin <= lo and hi <= 1 + cost.margin else UNDECIDED
    return Pays(answer, speed_up, lo, hi, cost)


def judged(yields: float, costs: Sequence[StepCost], running: float | None) -> list[Pays]:
    """The answer at the measured load nearest to `running`; at each where that is not known."""
    if running and len(costs) > 1:
        costs = [min(costs, key=lambda c: abs(math.log((c.concurrency or 1) / running)))]
    return [judge(yields, cost) for cost in costs]


def asked(args: argparse.Namespace, engine: str) -> list[StepCost]:
    """r as the options of `arguments.add_step_cost` give it; none where they do not."""
    if args.r is not None:
        return [StepCost(args.r, None, None, MARGIN, "--r")]
    return of_profile(args.profile, args.runs, engine, args.configuration) if args.profile else []


def of_profile(name: str, runs: str, engine: str, configuration: str | None = None) -> list[StepCost]:
    """What a profile's verdict knows of r, for each measured load.

    Of several workloads the geometric mean, with the widest bounds. UserError where the profile has no r for this
    engine, or has several configurations and none is named.
    """
    verdict = _verdict(name, runs)
    known = [p for p in verdict["points"] if p.get("step_cost")]
    points = [p for p in known if (p["configuration"] == configuration if configuration else p["engine"] == engine)]
    found = sorted({p["configuration"] for p in points})
    if not found:
        named = f"configuration {configuration}" if configuration else engine
        raise UserError(
            f"Profile {name} knows no step cost ratio of {named}; measure a speculative configuration and its base "
            "there, or give --r."
        )
    if len(found) > 1:
        raise UserError(
            f"Profile {name} has several configurations of {engine}, each with its own r; name the one that this "
            f"server runs with --configuration: {', '.join(found)}."
        )
    margin = verdict.get("margin") or MARGIN
    loads = sorted({int(p["concurrency"]) for p in points})
    return [
        _mean([p for p in points if p["concurrency"] == c], margin, f"profile {name}, {found[0]} at C = {c}")
        for c in loads
    ]


def _verdict(name: str, runs: str) -> dict:
    """The verdict of these runs, else the published one."""
    for root in dict.fromkeys((paths.runs_root(runs), paths.PUBLISHED_RUNS)):
        if store.path_of(root, name).is_file():
            return decide.stored(root, name)
    raise UserError(f"There is no verdict for profile {name}; run `make report PROFILE={name}`, or give --r.")


def _mean(points: Sequence[dict], margin: float, source: str) -> StepCost:
    """r over the workloads of one load."""
    r = math.exp(sum(math.log(p["step_cost"]) for p in points) / len(points))
    bounds = [(p.get("step_cost_lo"), p.get("step_cost_hi")) for p in points]
    known = [(float(lo), float(hi)) for lo, hi in bounds if lo is not None and hi is not None]
    lo = hi = None
    if len(known) == len(points):
        lo, hi = min(lo for lo, _ in known), max(hi for _, hi in known)
    return StepCost(r, lo, hi, margin, source, int(points[0]["concurrency"]), points[0]["method"])
