"""One cell's row: judged from what was seen, complete whether void or not."""

from typing import Any

from pydantic import ValidationError

from runners.core import progress, provenance, redact
from runners.core.validation import first_fault
from runners.measure import cell_key, gates
from runners.measure.cell_context import CellContext
from runners.measure.cell_key import Place
from runners.measure.cell_row import CellRow
from runners.measure.client import Loop
from runners.measure.judge import compared, judge, not_seen
from runners.measure.observation import Observation
from runners.measure.speeds import occupancy, rounded, speeds
from runners.measure.text_gates import mean_share
from runners.profiles import points
from runners.profiles.points import Point


def judged_row(context: CellContext, point: Point, place: Place, seen: Observation) -> CellRow:
    """The row of a cell that was observed, complete whether void or not.

    The base of the same block must be judged before, and its answers be in `context.base_answers`.
    """
    seen = compared(seen, context)
    reasons = judge(seen, context, point)
    try:
        row = measured_row(context, point, place, seen, reasons)
    except ValidationError as error:
        # What a server counts may be impossible in more ways than gates foresee; the cell is void, not the campaign.
        row = never_measured_row(context, point, place, f"impossible figures: {first_fault(error, CellRow, 'the row')}")
    label = points.label(context.name, point)
    for reason in row.reasons or []:
        progress.say(f"{label}: void: {reason}")
    return row


def measured_row(context: CellContext, point: Point, place: Place, seen: Observation, reasons: list[str]) -> CellRow:
    """The row of a cell that was measured: `ok` without a reason, `void` with one."""
    counts, drafts = seen.counts, context.drafts
    unseen = not_seen(seen, drafts)
    more: dict[str, Any] = {"not_seen": unseen} if unseen else {}
    return CellRow(
        **_identity(context, point, place),
        **speeds(seen.loop),
        occupancy=rounded(occupancy(seen.loop, point.concurrency)),
        status="void" if reasons else "ok",
        reasons=reasons,
        steps=counts.steps if drafts else None,
        drafted=counts.drafted if drafts else None,
        accepted=counts.accepted if drafts else None,
        accepted_per_position=counts.accepted_per_position if drafts else None,
        server_output_tokens=counts.output_tokens,  # beside the client's own count: the two must agree
        requests_begun=sum(r.first_token_s is not None for r in seen.results),
        # Some engines print a momentary value instead of a count (SGLang's accept length).
        gauges={name: rounded(value) for name, value in counts.gauges.items()},
        started_at=seen.started_at,
        running_peak=seen.running_peak,
        capped_at=gates.capped_at(point.concurrency, context.chosen.max_running_requests),
        equal_prefix_share=rounded(mean_share(seen.to_base)),
        answers_compared=len(seen.to_base) or None,
        answers_that_differ=sum(c.differs for c in seen.to_base) if seen.to_base else None,
        early_differences=sum(c.early for c in seen.to_base) if seen.to_base else None,
        reference_share=rounded(mean_share(seen.to_reference)),
        distinct_bigram_ratio=rounded(seen.distinct_bigrams),
        # Unknown for an attached server: its own processes cannot be distinguished from others.
        neighbour_cores=None if seen.attached else rounded(seen.neighbour_cores),
        steal_share=rounded(seen.steal_share),
        machine_gflops=rounded(context.machine_gflops, 1),
        gpu=seen.gpu,
        acceptance_source=counts.source if drafts else None,
        **more,
    )


def never_measured_row(context: CellContext, point: Point, place: Place, reason: str) -> CellRow:
    """The row of a cell whose server could not be kept alive."""
    return CellRow(
        **_identity(context, point, place),
        **speeds(Loop([], 0.0, 0.0)),
        status="void",
        reasons=[redact.without_home(reason)],
        steps=None,
        drafted=None,
        accepted=None,
        accepted_per_position=None,
        started_at=provenance.now(),
    )


def _identity(context: CellContext, point: Point, place: Place) -> dict[str, Any]:
    """Which cell it is: the fields that are known before anything is measured."""
    profile, chosen = context.profile, context.chosen
    settings = cell_key.settings(profile, context.name, point, context.preset)
    key = cell_key.key(settings, place)
    # What the key is made from stands in the row again where a reader or an analysis needs it: a hash tells nothing.
    return {
        "key": key,
        "attempt": context.ledger.attempts(key),
        "profile": profile.name,
        "configuration": context.name,
        "engine": chosen.engine,
        "engine_version": profile.engines[chosen.engine].version,
        "method": context.method,
        "k": chosen.k,
        "workload": point.workload,
        "concurrency": point.concurrency,
        "repeat": point.repeat,
        "round": point.round,
        "campaign": place.campaign,
        "start": place.start,
        "block": place.block,
        "order": place.order,
        "settings": settings,
        "depth": context.preset or profile.workload.default_preset,
        "forced_accept_length": chosen.forced_accept_length,
        "simulated": profile.simulated,
        "max_running_requests": chosen.max_running_requests,
        "output_tokens_per_request": context.output_tokens,
        "requests": point.requests,
        **({"load": "open", "rate": point.rate} if point.rate is not None else {}),
    }
