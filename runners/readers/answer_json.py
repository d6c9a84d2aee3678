"""What the JSON of an answer says about its own request: counts of speculation that some engines add to it.

vLLM: `metrics.speculative_decoding` (--per-request-spec-decode-metrics), and `spec_token_acceptance_counts` of its V0
engine; also the results that `vllm bench serve` saves. SGLang: `meta_info`. llama.cpp: `timings`.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from runners.core import json_text
from runners.readers.records import NOT_TOLD, AcceptanceRecord, LogReading
from runners.readers.sglang.http import counters_from_meta_info

Json = dict[str, Any]


def read_answer(text: str) -> LogReading | None:
    """The figures of the answers in a text, a record for each that was drafted for; None for any other text.

    The text is one answer, a list of them, one a line, or one that came as a stream; of a stream the last figures
    count. Whoever wrote it, an answer does not tell what became of the server.
    """
    found: list[tuple[Form, Json]] = []
    for value in _values(text):
        # llama.cpp repeats its figures within one answer when it is verbose.
        of_value: list[tuple[Form, Json]] = []
        for form in FORMS:
            for own in _with(value, form.keys):
                if (form, own) not in of_value:
                    of_value.append((form, own))
        found += of_value
    if not found:
        return None
    last = found[-1][0]
    found = [(form, own) for form, own in found if form is last]
    if text.lstrip().startswith("data:"):
        found = found[-1:]
    records = [record for form, own in found if (record := _read(form, own))]
    return LogReading(
        last.engine,
        engine_certainty="certain",
        generation=last.source,
        excerpt=True,
        acceptance=records,
        outcome=NOT_TOLD,
        lines=len(text.splitlines()),
    )


def _values(text: str) -> list[Any]:
    """The JSON values in a text: the whole, or those of its lines."""
    if text.lstrip()[:1] not in ("{", "[", "d"):
        return []
    try:
        whole = json_text.loads(text)
        return whole if isinstance(whole, list) else [whole]
    except ValueError:
        pass  # perhaps a value a line
    values = []
    for line in text.splitlines():
        try:
            values.append(json_text.loads(line.removeprefix("data:").strip()))
        except ValueError:
            continue
    return values


def _with(value: Any, keys: tuple[str, ...], depth: int = 8) -> Iterator[Json]:
    """The objects within a value that have one of these keys."""
    if isinstance(value, dict) and any(key in value for key in keys):
        yield value
    elif depth and isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _with(part, keys, depth - 1)


def _record(
    values: Json,
    steps: int | None,
    drafted: int | None,
    accepted: int | None,
    positions: list[float] | None = None,
    throughput: Any = None,
) -> AcceptanceRecord | None:
    """The record of one request; None where nothing was drafted."""
    if not steps and not drafted:
        return None
    length = 1 + accepted / steps if steps and accepted is not None else None
    rate = accepted / drafted if drafted and accepted is not None else None
    return AcceptanceRecord(
        line=json.dumps(values)[:300],
        accept_length=length,
        printed_rate=rate,
        accepted=accepted,
        drafted=drafted,
        per_position=positions,
        recomputed_rate=rate,
        throughput=throughput if isinstance(throughput, int | float) else None,
    )


def _count(values: Json, name: str) -> int | None:
    value = values.get(name)
    return int(value) if isinstance(value, int | float) else None


def _of_vllm(values: Json) -> AcceptanceRecord | None:
    steps = _count(values, "num_spec_steps")
    histogram = values.get("acceptance_histogram")  # steps by the number of drafts that they accepted
    positions = None
    if steps and isinstance(histogram, list):
        positions = [sum(histogram[i + 1 :]) / steps for i in range(len(histogram) - 1)]
    return _record(
        values, steps, _count(values, "num_draft_tokens"), _count(values, "num_accepted_draft_tokens"), positions
    )


def _of_vllm_v0(values: Json) -> AcceptanceRecord | None:
    """Steps, then the drafts accepted at each position."""
    counts = values["spec_token_acceptance_counts"]
    if not isinstance(counts, list) or not counts or not counts[0]:
        return None
    steps, at_positions = counts[0], counts[1:]
    return _record(values, steps, steps * len(at_positions), sum(at_positions), [n / steps for n in at_positions])


def _of_vllm_bench(values: Json) -> AcceptanceRecord | None:
    positions = values.get("spec_decode_per_position_acceptance_rates")
    return _record(
        {name: value for name, value in values.items() if name.startswith("spec_decode")},
        _count(values, "spec_decode_num_drafts"),
        _count(values, "spec_decode_draft_tokens"),
        _count(values, "spec_decode_accepted_tokens"),
        positions if isinstance(positions, list) and positions else None,
        values.get("output_throughput"),
    )


def _of_sglang(values: Json) -> AcceptanceRecord | None:
    counts = counters_from_meta_info([values])
    steps, positions = counts.steps, counts.accepted_per_position
    survival = [n / steps for n in positions] if steps and positions else None
    record = _record(values, steps, counts.drafted, counts.accepted, survival)
    if record is None:
        return None
    length, rate = values.get("spec_accept_length"), values.get("spec_accept_rate")
    if record.accept_length is None and isinstance(length, int | float):
        record.accept_length = float(length)
    if record.printed_rate is None and isinstance(rate, int | float):
        record.printed_rate = record.recomputed_rate = float(rate)  # accepted / drafted in every release
    return record


def _of_llamacpp(values: Json) -> AcceptanceRecord | None:
    """Every decode step adds one token of the target's own to those it accepted; the first token is the prompt's."""
    drafted, accepted, tokens = (_count(values, name) for name in ("draft_n", "draft_n_accepted", "predicted_n"))
    steps = _count(values, "draft_rounds")
    if steps is None and tokens is not None and accepted is not None:
        steps = max(0, tokens - 1 - accepted)
    return _record(values, steps, drafted, accepted, throughput=values.get("predicted_per_second")) if drafted else None


class Form(NamedTuple):
    """An engine's figures: what the text is, the keys of which one is there, the function that reads them."""

    engine: str
    source: str
    keys: tuple[str, ...]
    record: Callable[[Json], AcceptanceRecord | None]


# Keys of figures without speculation are here too: such a text is known, and tells that nothing was drafted.
FORMS = [
    Form("vllm", "metrics of one request", ("num_spec_steps", "num_accepted_draft_tokens"), _of_vllm),
    Form("vllm", "metrics of one request (V0)", ("spec_token_acceptance_counts",), _of_vllm_v0),
    Form("vllm", "results of vllm bench serve", ("spec_decode_num_drafts", "spec_decode_draft_tokens"), _of_vllm_bench),
    Form("sglang", "meta_info of one request", ("spec_verify_ct", "spec_accept_length", "e2e_latency"), _of_sglang),
    Form("llamacpp", "timings of one request", ("draft_n", "predicted_per_second", "predicted_ms"), _of_llamacpp),
]


def _read(form: Form, values: Json) -> AcceptanceRecord | None:
    try:
        return form.record(values)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None  # figures that are no numbers
