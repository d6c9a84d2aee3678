"""Is a cell good? Every reason why it is not, in words, from what was seen of it."""

from dataclasses import replace

from runners.core import redact
from runners.measure import gates, sampled_gates, text_gates
from runners.measure.cell_context import CellContext
from runners.measure.client import CUT, TIMED
from runners.measure.observation import Observation
from runners.measure.speeds import occupancy, speeds
from runners.profiles import methods
from runners.profiles.points import Point


def compared(seen: Observation, context: CellContext) -> Observation:
    """The observation with its answers beside those of the base and of the reference model.

    Nothing at a temperature above 0. Where both sides of a block are measured, the base's answers of that block
    must be in `context.base_answers` first: they are the ones made at the same batch size.
    """
    if context.profile.workload.temperature > 0:
        return seen
    # The reference model's texts go on behind the end of text: only what comes before an answer's end is compared.
    as_far = [replace(r, finish_reason=None) for r in seen.results]
    return replace(
        seen,
        to_base=text_gates.compare_all(seen.results, context.base_answers.texts),
        to_reference=text_gates.compare_all(as_far, context.reference_texts),
    )


def judge(seen: Observation, context: CellContext, point: Point) -> list[str]:
    """The reasons why the cell is void; empty when it is ok. `seen` comes from `compared`."""
    reasons = [
        *counter_reasons(seen, context),
        death_reason(seen),
        *request_reasons(seen, context, point),
        gates.synthetic_accept_length_held(
            context.chosen.forced_accept_length, seen.counts.steps, seen.counts.accepted
        ),
        *text_reasons(seen, context, point),
        # An attached server's processes are not known to us: its own work would count as a neighbour's.
        None if seen.attached else context.machine.cell(context.name, seen.neighbour_cores, seen.steal_share),
        *speculation_reasons(seen, context, point),
        gates.time_passed(context.output_tokens, speeds(seen.loop)["tpot_ms_p50"]),
    ]
    return [reason for reason in reasons if reason]


def death_reason(seen: Observation) -> str | None:
    """Why the server did not survive the cell. Of one that is not ours only that it does not answer is known."""
    if not seen.death:
        return None
    death = redact.without_home(seen.death)
    return death if seen.attached else f"the server died: {death}"


def not_seen(seen: Observation, drafts: bool) -> list[str]:
    """What a server that is not ours did not show, so that no gate could judge it: in words, for its row. drafts: it is
    the one that speculates.
    """
    if seen.unseen:
        return ["its counters (no /metrics): the accept length, and whether others used it meanwhile"]
    if not seen.attached:
        return []
    found = ["how many requests it ran at once"] if seen.running_peak is None else []
    if drafts and seen.counts.steps is None and not seen.counts.gauges:
        found.append("how many drafted tokens it accepted (its /metrics has no such counts)")
    return found


def counter_reasons(seen: Observation, context: CellContext) -> list[str | None]:
    """Can the counts over the cell be trusted: were they read, do they hold this cell alone?"""
    if seen.unseen:
        return []
    if seen.before is None or seen.after is None:
        return ["the server's counters could not be read"]
    not_empty = None
    # Only of an engine whose gauges are fresh: an idle SGLang may still report the last cell's number.
    if context.counts_in_metrics and (seen.before.running or seen.before.queued):
        not_empty = f"the queue was not empty before the cell: {seen.before.running or 0:.0f} running"
    # What a server made for a request after the client had closed it: a step's tokens, or two. Of a server that runs
    # already nobody has said K, but its counts by position show it.
    drafts = context.chosen.k or len(seen.counts.accepted_per_position or [])
    cut = sum(r.role == CUT for r in seen.results) * 2 * (drafts + 1)
    return [seen.count_fault, not_empty, gates.counts_agree(seen.counts.output_tokens, seen.received_tokens, cut)]


def request_reasons(seen: Observation, context: CellContext, point: Point) -> list[str | None]:
    """Was every request answered in full, at the concurrency that the cell is about, by a client that kept up?"""
    if point.rate is not None:
        return rate_reasons(seen, context, point)
    answered, workload = [r for r in seen.results if r.error is None], context.profile.workload
    # Without a window there is nothing to be outside of: the loop's ramps are in its figures, as they always were.
    held = occupancy(seen.loop, point.concurrency)
    return [
        gates.completed(seen.results, min(point.requests, point.concurrency)),
        gates.produced_tokens(seen.results, seen.server_cores) if seen.death is None else None,
        gates.counted(answered, context.output_tokens, natural_ends=workload.ends == "natural"),
        gates.occupied(held, point.concurrency),
        held_reason(seen, context, point),
        # A stand-in engine is so fast that the client always is a large part of the cell.
        None if context.profile.simulated else gates.client_kept_up(seen.loop.client_cpu_s, seen.loop.seconds),
    ]


def held_reason(seen: Observation, context: CellContext, point: Point) -> str | None:
    """Did the server run as many requests as the cell is about? One that is not ours need not say."""
    if seen.attached and seen.running_peak is None:
        return None
    return gates.held_concurrency(seen.running_peak, point.concurrency, context.chosen.max_running_requests)


def rate_reasons(seen: Observation, context: CellContext, point: Point) -> list[str | None]:
    """Of an open loop: was every request of the window sent on time, and answered in full or cut as too late?"""
    judged = [r for r in seen.results if r.role in (TIMED, CUT)]
    answered, workload = [r for r in judged if r.role == TIMED and r.error is None], context.profile.workload
    return [
        gates.completed(judged, point.requests),
        gates.produced_tokens(seen.results, seen.server_cores) if seen.death is None else None,
        gates.counted(answered, workload.output_tokens, natural_ends=workload.ends == "natural"),
        gates.on_time(judged),
        None if context.profile.simulated else gates.client_kept_up(seen.loop.client_cpu_s, seen.loop.seconds),
    ]


def text_reasons(seen: Observation, context: CellContext, point: Point) -> list[str | None]:
    """Is the output language, and the base's and the reference model's? Not judged under synthetic acceptance, where
    the output is not the model's.
    """
    if context.chosen.forced_accept_length is not None:
        return []
    limits, whose = context.profile.gates, f"{context.base}'s"
    language = text_gates.language(seen.distinct_bigrams, limits.distinct_bigram_floor)
    if context.profile.workload.temperature > 0:
        return [language, *sampled_reasons(seen, context, point, whose)]
    if limits.exact_text(context.chosen.engine):
        to_base = text_gates.exact_text(seen.to_base, whose)
    else:
        to_base = text_gates.same_text(seen.to_base, limits.equal_to_base_floor, whose)
    reference = limits.equal_to_reference_floor
    to_reference = None
    if reference is not None:
        to_reference = text_gates.same_text(seen.to_reference, reference, "the reference model's")
    return [language, to_base, to_reference]


def sampled_reasons(seen: Observation, context: CellContext, point: Point, whose: str) -> list[str | None]:
    """At a temperature above 0: do the answers come from the base's distribution, as far as one cell shows?"""
    base = context.base_answers.samples.get((point.workload, point.concurrency), [])
    natural = context.profile.workload.ends == "natural"
    return [
        sampled_gates.same_lengths(seen.results, base, whose) if natural else None,
        sampled_gates.same_language(seen.results, base, whose),
    ]


def speculation_reasons(seen: Observation, context: CellContext, point: Point) -> list[str | None]:
    """Does the server speculate, and is there anything to compare its answers with?"""
    reasons: list[str | None] = []
    if context.drafts_every_step and context.counts_in_metrics and not seen.counts.drafted and not seen.unseen:
        # llama.cpp serves on, healthy and without speculation, when it cannot use the drafter.
        reasons.append("no token was drafted: the server does not speculate")
    if context.drafts and not methods.method(context.method).tree:
        # Of a tree of drafts K is not the longest chain.
        counts = seen.counts
        reasons.append(sampled_gates.possible_accept_length(counts.steps, counts.accepted, context.chosen.k))
    judged = context.chosen.forced_accept_length is None
    if context.profile.workload.temperature > 0:
        compares = bool(context.base_answers.samples.get((point.workload, point.concurrency)))
    else:
        compares = bool(seen.to_base) or context.profile.gates.equal_to_reference_floor is not None
    if context.drafts and judged and not compares:
        reasons.append("there is no base answer and no reference to compare with: measure the base first")
    return reasons
