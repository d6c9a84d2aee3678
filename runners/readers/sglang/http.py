"""What SGLang answers over HTTP: /metrics, /server_info, and the `meta_info` of each answer.

Read from the wheels of SGLang 0.5.9, 0.5.10.post1 and 0.5.23 (paths under sglang/srt/): gauges in
metrics/collector.py, later observability/metrics_collector.py; meta_info in managers/tokenizer_manager.py;
internal states in managers/scheduler.py, later managers/scheduler_components/internal_state.py.
"""

from typing import Any

from runners.readers.prometheus import Sample, count, samples
from runners.readers.records import Counters

Json = dict[str, Any]


def _over_ranks(found: list[Sample], name: str) -> list[float]:
    """A gauge's value for each data-parallel rank: all tensor-parallel ranks of one show the same figure."""
    groups: dict[str, float] = {}
    for s in found:
        if s.name == name and not s.labels.get("priority"):  # a priority's share is part of the total already
            rank = s.labels.get("dp_rank", "")
            groups[rank] = max(s.value, groups.get(rank, s.value))
    return list(groups.values())


def read_counters(metrics_text: str, meta_info: list[Json] | None = None, **_extra: Any) -> Counters:
    """Counters of a /metrics answer (`--enable-metrics`).

    SGLang exports no counts of drafted and accepted tokens: accept length and rate are gauges of the last logging
    interval, kept in `gauges` (to be sampled, never subtracted; 0 means "no value"). Only newer releases count
    verification calls. meta_info: of the answers; its counts are then used instead.
    """
    found = samples(metrics_text, ("sglang:",))
    gauges = {}
    for key in ("spec_accept_length", "spec_accept_rate", "gen_throughput", "spec_num_draft_tokens"):
        values = [v for v in _over_ranks(found, f"sglang:{key}") if v > 0]
        if values:
            # Rates are averaged over data-parallel ranks, throughput adds up.
            gauges[key] = sum(values) if key == "gen_throughput" else sum(values) / len(values)
    running, queued = (_over_ranks(found, f"sglang:num_{x}_reqs") for x in ("running", "queue"))
    if meta_info is not None:
        counters = counters_from_meta_info(meta_info)
    else:
        counters = Counters(
            steps=count(found, "sglang:spec_verify_calls_total"),
            output_tokens=count(found, "sglang:generation_tokens_total"),
            requests=count(found, "sglang:time_to_first_token_seconds_count"),
            source="sglang /metrics",
        )
    counters.running = sum(running) if running else None
    counters.queued = sum(queued) if queued else None
    counters.gauges = gauges
    return counters


def _known_sum(infos: list[Json], *names: str) -> int | None:
    """The sum of a field over all answers that have it, under the first of its names; None when none has it."""
    values = [next((i[n] for n in names if i.get(n) is not None), None) for i in infos]
    known = [int(v) for v in values if v is not None]
    return sum(known) if known else None


def counters_from_meta_info(infos: list[Json]) -> Counters:
    """Counts summed over the `meta_info` of finished requests, under old names (0.5.9) or new ones.

    spec_accept_token_num became spec_num_correct_drafts, spec_draft_token_num spec_num_proposed_drafts,
    spec_accept_histogram spec_correct_drafts_histogram (steps by number of accepted drafts).
    """
    found = [i.get("spec_correct_drafts_histogram") or i.get("spec_accept_histogram") for i in infos]
    histograms: list[list[int]] = [h for h in found if h]
    positions = None
    if histograms:
        longest = max(len(h) for h in histograms)
        # A step that accepted n drafts accepted the first n positions.
        positions = [sum(sum(h[p + 1 :]) for h in histograms) for p in range(longest - 1)]
    return Counters(
        steps=_known_sum(infos, "spec_verify_ct"),
        drafted=_known_sum(infos, "spec_num_proposed_drafts", "spec_draft_token_num"),
        accepted=_known_sum(infos, "spec_num_correct_drafts", "spec_accept_token_num"),
        accepted_per_position=positions,
        output_tokens=_known_sum(infos, "completion_tokens"),
        requests=len(infos),
        source="sglang meta_info",
    )


def read_server_info(obj: Json) -> Json:
    """What /server_info (old name /get_server_info) answers: a dict with these keys, None for what it does not have.

    avg_spec_accept_length: since the server's start, the bonus token counted in; absent until the first decode line was
    logged; a plain mean over data-parallel ranks. effective_max_running_requests_per_dp: the cap of one rank (the
    smallest); effective_max_running_requests: of all ranks together. num_draft_tokens, version.
    """
    states = obj.get("internal_states") or []
    states = [s for s in (states if isinstance(states, list) else [states]) if isinstance(s, dict)]
    lengths = [s["avg_spec_accept_length"] for s in states if s.get("avg_spec_accept_length") is not None]
    name = "effective_max_running_requests_per_dp"
    caps = [int(s[name]) for s in states if s.get(name) is not None]
    drafts = obj.get("speculative_num_draft_tokens")
    return {
        "avg_spec_accept_length": sum(lengths) / len(lengths) if lengths else None,
        name: min(caps) if caps else None,
        "effective_max_running_requests": sum(caps) if caps else None,
        "num_draft_tokens": None if drafts is None else int(drafts),
        "version": obj.get("version"),
    }
