"""Figures of single requests and of benchmarks: the JSON of answers, the block that a benchmark prints."""

import json

import pytest

from runners.readers.read_text import read_text

METRICS = {
    "acceptance_histogram": [6, 2, 2],
    "num_spec_steps": 10,
    "num_accepted_draft_tokens": 6,
    "num_draft_tokens": 20,
}
META_INFO = {"completion_tokens": 17, "spec_verify_ct": 10, "spec_accept_token_num": 6, "spec_draft_token_num": 20}
TIMINGS = {"predicted_n": 17, "predicted_ms": 400.0, "predicted_per_second": 42.5, "draft_n": 20, "draft_n_accepted": 6}
SAVED = {"spec_decode_num_drafts": 10, "spec_decode_draft_tokens": 20, "spec_decode_accepted_tokens": 6}

# What stands in the answer -> whose it is.
ANSWERS = {
    "vLLM": ({"usage": {}, "metrics": {"speculative_decoding": METRICS}}, "vllm"),
    "vLLM, the object alone": (METRICS, "vllm"),
    "vLLM V0": ({"metrics": {"spec_token_acceptance_counts": [10, 4, 2]}}, "vllm"),
    "vllm bench serve, saved": ({"backend": "vllm", **SAVED}, "vllm"),
    "SGLang": ({"text": "a", "meta_info": META_INFO}, "sglang"),
    "SGLang, the object alone": (META_INFO, "sglang"),
    "llama.cpp": ({"choices": [{"index": 0}], "timings": TIMINGS}, "llamacpp"),
    "llama.cpp, verbose": ({"__verbose": {"timings": TIMINGS}, "timings": TIMINGS}, "llamacpp"),
}


@pytest.mark.parametrize(("answer", "engine"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("indent", [None, 1])
def test_one_requests_own_figures(answer, engine, indent):
    found = read_text(json.dumps(answer, indent=indent).splitlines(keepends=True))
    assert (found.engine, found.engine_certainty, found.excerpt) == (engine, "certain", True)
    assert found.outcome == "not in this text" and found.cause is None
    (record,) = found.acceptance
    assert (record.accepted, record.drafted, record.recomputed_rate) == (6, 20, 0.3)
    assert record.accept_length == pytest.approx(1.6)


def test_survival_by_position():
    for answer in (METRICS, {"spec_token_acceptance_counts": [10, 4, 2]}):
        assert read_text([json.dumps(answer)]).acceptance[0].per_position == [0.4, 0.2]


def test_many_answers_are_many_records_and_a_stream_is_one():
    half = {**TIMINGS, "predicted_n": 9, "draft_n": 10, "draft_n_accepted": 3}
    lines = [json.dumps({"timings": t}) + "\n" for t in (half, TIMINGS, TIMINGS)]
    assert [r.drafted for r in read_text(lines).acceptance] == [10, 20, 20]
    assert [r.drafted for r in read_text(["[" + ",".join(lines) + "]"]).acceptance] == [10, 20, 20]
    stream = [f"data: {line}\n" for line in lines] + ["data: [DONE]\n"]
    assert [r.drafted for r in read_text(stream).acceptance] == [20]


@pytest.mark.parametrize(
    "answer",
    [
        {"timings": {"predicted_n": 9, "predicted_per_second": 40.0}},
        {"metrics": {"spec_token_acceptance_counts": [0]}},
        {"metrics": {"spec_token_acceptance_counts": ["a", "b"]}},
        {"meta_info": {"completion_tokens": 4, "e2e_latency": 0.2}},
    ],
)
def test_an_answer_without_speculation_is_known_and_has_no_record(answer):
    assert read_text([json.dumps(answer)]).acceptance == []


BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     8
Output token throughput (tok/s):         70.50
---------------Speculative Decoding---------------
Acceptance rate (%):                     30.00
Acceptance length:                       1.60
Drafts:                                  10
Draft tokens:                            20
Accepted tokens:                         6
Per-position acceptance (%):
  Position 0:                            40.00
  Position 1:                            20.00
==================================================
"""


def test_the_block_of_a_benchmark():
    found = read_text(BLOCK.splitlines(keepends=True))
    assert (found.engine, found.engine_certainty, found.outcome) == ("vllm", "certain", "not in this text")
    (record,) = found.acceptance
    assert (record.accepted, record.drafted, record.accept_length) == (6, 20, 1.6)
    assert record.printed_rate == pytest.approx(0.3) and record.per_position == pytest.approx([0.4, 0.2])
    assert record.throughput == 70.5


def test_the_block_of_several_runs_and_that_of_sglang():
    assert len(read_text((BLOCK * 3).splitlines()).acceptance) == 3
    middle = [line for line in BLOCK.splitlines() if line.startswith(("Acc", "Dra", "Per", "  Pos"))]
    assert len(read_text(middle * 2).acceptance) == 2
    found = read_text(["Concurrency:                     7.90", "Accept length:                   1.60"])
    assert (found.engine, found.acceptance[0].accept_length) == ("sglang", 1.6)


def test_a_servers_log_is_not_taken_for_a_benchmark():
    start = "(APIServer pid=1) INFO 03-11 06:16:52 [utils.py:1] non-default args: {'model': 'm'}"
    assert read_text([start, *BLOCK.splitlines()]).phases


def test_an_answer_of_sglang_that_has_rates_and_no_counts():
    info = {"completion_tokens": 20, "spec_verify_ct": 10, "spec_accept_length": 2.0, "spec_accept_rate": 0.33}
    (record,) = read_text([json.dumps({"meta_info": info})]).acceptance
    assert (record.accept_length, record.printed_rate, record.recomputed_rate) == (2.0, 0.33, 0.33)
