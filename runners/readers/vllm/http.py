"""What vLLM answers on /metrics (V1 engine: v1/spec_decode/metrics.py, v1/metrics/loggers.py)."""

from typing import Any

from runners.readers.prometheus import accepted_tokens, count, samples, total
from runners.readers.records import Counters


def read_counters(metrics_text: str, **_extra: Any) -> Counters:
    """Counters of a /metrics answer, summed over engines (data-parallel ranks) and models.

    `steps` counts drafts that were verified; see `Counters` for what that means with an n-gram drafter.
    """
    spec, first_tokens = "vllm:spec_decode_num_", "vllm:time_to_first_token_seconds_count"
    found = samples(metrics_text, (spec, "vllm:generation_tokens", "vllm:num_requests_", first_tokens))
    accepted, positions = accepted_tokens(found, spec)
    return Counters(
        steps=count(found, spec + "drafts_total"),
        drafted=count(found, spec + "draft_tokens_total"),
        accepted=accepted,
        accepted_per_position=positions,
        output_tokens=count(found, "vllm:generation_tokens_total"),
        requests=count(found, first_tokens),
        running=total(found, "vllm:num_requests_running"),
        queued=total(found, "vllm:num_requests_waiting"),
        source="vllm /metrics",
    )
