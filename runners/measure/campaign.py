"""A campaign: every comparison is measured once, then the time goes where the answer is still open.

Where two servers fit into memory, base and one other are alive at once and a start is a visit of the two. Where only
one fits, a start is a round: each configuration is started once and measured alone, and sides are compared within a
round. A server that dies, stalls or lies voids its cells and never the campaign.
"""

import math
from pathlib import Path

from runners.core import paths, progress
from runners.core.errors import UserError
from runners.core.locks import alone
from runners.measure import campaign_record, next_start, rate_sweep, settings_check, visit
from runners.measure.campaign_record import Campaign
from runners.measure.campaign_run import Judge, Plan, Run
from runners.measure.estimate import Clock
from runners.measure.server_pool import ServerPool
from runners.profiles import points
from runners.profiles.profile import Profile


def run(
    profile: Profile,
    preset: str | None,
    runs: Path,
    judge: Judge,
    names: list[str] | None = None,
    seconds: float | None = None,
    more: bool = False,
    strict: bool = False,
) -> Campaign:
    """Measure a campaign, or what is left of an interrupted one; a finished one that was asked for the same stays as it
    is unless `more`.

    names: the configurations (default: those of the preset). seconds: the budget (default: the preset's minutes; none
    there: every start is made). judge: asked after each start which points are still open. With `strict` a
    configuration that cannot be started raises UserError; without, it is "not measured here" and its reason is kept.
    """
    preset = preset or profile.workload.default_preset
    chosen, minutes = names or profile.at_preset(preset), profile.preset(preset).minutes
    for name in chosen:
        profile.configuration(name)  # an unknown name is an error before anything else
    budget = seconds if seconds is not None else minutes * 60 if minutes is not None else None
    folder = runs / profile.name
    compared = points.comparisons(profile, chosen)
    asked = list(dict.fromkeys(side for comparison in compared for side in comparison.sides))
    damaged = settings_check.damaged(profile, runs, asked)
    campaigns = campaign_record.current(folder, preset, profile.preset(preset).rounds, budget, more, asked)
    campaign = campaigns[-1]
    if campaign.is_over(asked) and not damaged:
        return campaign
    folder.mkdir(parents=True, exist_ok=True)
    # Not only for the files: a second server on this machine would slow both down.
    with alone(folder), ServerPool(profile, preset, runs) as pool:
        settings_check.set_aside_damaged(profile, runs, damaged)
        campaign.forget(damaged)
        this = Run(
            profile,
            preset,
            runs,
            campaign,
            compared,
            pool,
            Clock(profile, preset, paths.PUBLISHED_RUNS, runs),
            lambda: _save(this, campaigns),
            spent_before=campaign.spent_s,
        )
        campaign.failed = this.failed
        settings_check.set_aside(profile, runs)
        this.save()
        try:
            _measure(this, judge)
            rate_sweep.measure(this)
            campaign.ends(asked, profile.at_preset(preset))
        finally:
            this.save()
            visit.write_statuses(this)
            progress.emit("campaign", state="ends")
    if strict:
        _refuse_failed(this)
    return campaign


def _refuse_failed(this: Run) -> None:
    """UserError for the first configuration that could not be started."""
    for name, reason in this.failed.items():
        raise UserError(f"{name}: {reason}")


def _save(this: Run, campaigns: list[Campaign]) -> None:
    this.campaign.spent_s = round(this.spent(), 1)
    campaign_record.save(this.runs / this.profile.name, campaigns)


def _measure(this: Run, judge: Judge) -> None:
    """First every comparison once, then the open ones, as long as there are any and the budget lasts."""
    todo = next_start.first_pass(this)
    while todo:
        plan = todo.pop(0)
        if not this.can_begin(plan):
            progress.say(f"{' and '.join(plan.comparison.sides)}: left out, the time is up")
        else:
            progress.emit(
                "campaign", state="start", left_s=_finite(this.left()), to_do_s=_finite(_to_do(this, [plan, *todo]))
            )
            visit.measure(this, plan)
        if not todo:
            todo = _open(this, judge)


def _open(this: Run, judge: Judge) -> list[Plan]:
    """What to measure next, after a look at every answer."""
    found, total = judge()
    plans = next_start.of_open_points(this, found)
    decided = total - len(found)
    progress.say(f"{decided} of {total} points are decided")
    progress.emit(
        "campaign",
        state="look",
        decided=decided,
        points=total,
        left_s=_finite(this.left()),
        to_do_s=_finite(_to_do(this, plans)),
    )
    return plans


def _to_do(this: Run, plans: list[Plan]) -> float:
    """Seconds that are still to come: what is planned, never more than the budget, and the open loops after it."""
    closed = min(sum(this.seconds(p) for p in plans), max(this.left(), 0.0))
    return closed + rate_sweep.expected_seconds(this)


def _finite(seconds: float) -> float | None:
    return None if math.isinf(seconds) else round(seconds, 1)
