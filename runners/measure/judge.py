"""Is a cell good? Every reason why it is not, in words, from what was seen of it."""

from runners.core import redact
from runners.measure import gates
from runners.measure.cell_context import CellContext
from runners.measure.client import CUT, TIMED
from runners.measure.observation import Observation
from runners.measure.speeds import speeds
from runners.profiles.points import Point


def judge(seen: Observation, context: CellContext, point: Point) -> list[str]:
    """The reasons why the cell is void; empty when it is ok.

    The texts are judged on `context.to_base` and `context.to_reference`, which hold this cell's answers already.
    """
    reasons = [
        *counter_reasons(seen, context),
        f"the server died: {redact.without_home(seen.death)}" if seen.death else None,
        *request_reasons(seen, context, point),
        gates.synthetic_accept_length_held(
            context.chosen.forced_accept_length, seen.counts.steps, seen.counts.accepted
        ),
        *text_reasons(seen, context),
        # An attached server's processes are not known to us: its own work would count as a neighbour's.
        None if seen.attached else gates.quiet(seen.neighbour_cores, seen.steal_share, context.profile.gates),
        *speculation_reasons(seen, context),
        gates.time_passed(context.profile.workload.output_tokens, speeds(seen.loop)["tpot_ms_p50"]),
    ]
    return [reason for reason in reasons if reason]


def counter_reasons(seen: Observation, context: CellContext) -> list[str | None]:
    """Can the counts over the cell be trusted: were they read, do they hold this cell alone?"""
    if seen.before is None or seen.after is None:
        return ["the server's counters could not be read"]
    not_empty = None
    # Only of an engine whose gauges are fresh: an idle SGLang may still report the last cell's number.
    if context.counts_in_metrics and (seen.before.running or seen.before.queued):
        not_empty = f"the queue was not empty before the cell: {seen.before.running or 0:.0f} running"
    return [seen.count_fault, not_empty, gates.counts_agree(seen.counts.output_tokens, seen.received_tokens)]


def request_reasons(seen: Observation, context: CellContext, point: Point) -> list[str | None]:
    """Was every request answered in full, at the concurrency that the cell is about, by a client that kept up?"""
    if point.rate is not None:
        return rate_reasons(seen, context, point)
    answered = [r for r in seen.results if r.error is None]
    return [
        gates.completed(seen.results, point.requests),
        gates.produced_tokens(seen.results, seen.server_cores) if seen.death is None else None,
        gates.counted(answered, context.profile.workload.output_tokens),
        gates.held_concurrency(seen.running_peak, point.concurrency, context.chosen.max_running_requests),
        # A stand-in engine is so fast that the client always is a large part of the cell.
        None if context.profile.simulated else gates.client_kept_up(seen.loop.client_cpu_s, seen.loop.seconds),
    ]


def rate_reasons(seen: Observation, context: CellContext, point: Point) -> list[str | None]:
    """Of an open loop: was every request of the window sent on time, and answered in full or cut as too late?"""
    judged = [r for r in seen.results if r.role in (TIMED, CUT)]
    answered = [r for r in judged if r.role == TIMED and r.error is None]
    return [
        gates.completed(judged, point.requests),
        gates.produced_tokens(seen.results, seen.server_cores) if seen.death is None else None,
        gates.counted(answered, context.profile.workload.output_tokens),
        gates.on_time(judged),
        None if context.profile.simulated else gates.client_kept_up(seen.loop.client_cpu_s, seen.loop.seconds),
    ]


def text_reasons(seen: Observation, context: CellContext) -> list[str | None]:
    """Is the output language, and the base's and the reference model's? Not judged under synthetic acceptance, where
    the output is not the model's.
    """
    if context.chosen.forced_accept_length is not None:
        return []
    limits = context.profile.gates
    return [
        gates.language(seen.distinct_bigrams, limits.distinct_bigram_floor),
        gates.same_text(context.to_base, limits.equal_to_base_floor, f"{context.base}'s"),
        gates.same_text(context.to_reference, limits.equal_to_reference_floor, "the reference model's"),
    ]


def speculation_reasons(seen: Observation, context: CellContext) -> list[str | None]:
    """Does the server speculate, and is there anything to compare its answers with?"""
    reasons: list[str | None] = []
    if context.drafts_every_step and context.counts_in_metrics and not seen.counts.drafted:
        # llama.cpp serves on, healthy and without speculation, when it cannot use the drafter.
        reasons.append("no token was drafted: the server does not speculate")
    judged = context.chosen.forced_accept_length is None
    nothing_to_compare = not seen.to_base and context.profile.gates.equal_to_reference_floor is None
    if context.drafts and judged and nothing_to_compare:
        reasons.append("there is no base answer and no reference to compare with: measure the base first")
    return reasons
