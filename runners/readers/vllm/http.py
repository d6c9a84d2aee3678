"""What vLLM answers on /metrics (V1 engine: v1/spec_decode/metrics.py, v1/metrics/loggers.py)."""

from typing import Any

from runners.readers.prometheus import by_position, count, samples, total
from runners.readers.records import Counters


def read_counters(metrics_text: str, **_extra: Any) -> Counters:
    """Counters of a /metrics answer, summed over engines (data-parallel ranks) and models.

    `steps` counts drafts that were verified; see `Counters` for what that means with an n-gram drafter. Accepted tokens
    are the sum over positions where the text has no counter of them.
    """
    spec = "vllm:spec_decode_num_"
    found = samples(metrics_text, (spec, "vllm:generation_tokens", "vllm:num_requests_"))
    accepted = count(found, spec + "accepted_tokens_total")
    positions = by_position(found, spec + "accepted_tokens_per_pos_total")
    return Counters(
        steps=count(found, spec + "drafts_total"),
        drafted=count(found, spec + "draft_tokens_total"),
        accepted=sum(positions) if accepted is None and positions is not None else accepted,
        accepted_per_position=positions,
        output_tokens=count(found, "vllm:generation_tokens_total"),
        running=total(found, "vllm:num_requests_running"),
        queued=total(found, "vllm:num_requests_waiting"),
        source="vllm /metrics",
    )
