"""The measured acceptance of a drafter from whatever was read: counts, lines that count, lines that do not."""

import pytest

from runners.drafter import measured
from runners.readers import vllm
from runners.readers.records import AcceptanceRecord, Counters, LogReading

TEN_STEPS = AcceptanceRecord("", accept_length=1.9, accepted=9, drafted=20, per_position=[0.6, 0.3])
THIRTY_STEPS = AcceptanceRecord("", accept_length=1.3, accepted=9, drafted=60, per_position=[0.2, 0.1])


def log(*records):
    return LogReading("any", acceptance=list(records))


def test_counted_lines_are_pooled_as_a_ratio_of_sums():
    found = measured.of_reading(log(TEN_STEPS, THIRTY_STEPS), "a.log")
    assert found.steps == 40 and found.accept_length == pytest.approx(1 + 18 / 40)
    assert found.survival == pytest.approx([0.3, 0.15])
    assert found.words == "accept length 1.450 over 40 steps; survival 0.300, 0.150" and not found.reads_one


def test_a_line_without_positions_counts_by_its_accept_length():
    found = measured.of_reading(log(AcceptanceRecord("", accept_length=1.5, accepted=10, drafted=60)), "a.log")
    assert (found.steps, found.accept_length, found.survival) == (20, 1.5, [])


def test_lines_without_counts_are_a_mean_by_running_requests():
    lines = [AcceptanceRecord("", accept_length=1.0, running=48), AcceptanceRecord("", accept_length=2.0, running=16)]
    found = measured.of_reading(log(*lines), "a.log")
    assert (found.accept_length, found.steps) == (1.25, None) and found.words == "accept length 1.250"
    nothing = measured.of_reading(log(lines[0], AcceptanceRecord("", accept_length=1.0)), "a.log")
    assert nothing.reads_one


def test_lines_that_accepted_nothing_are_counted():
    found = measured.of_reading(log(AcceptanceRecord("", 1.0, accepted=0, drafted=60, per_position=[0, 0, 0])), "a.log")
    assert (found.steps, found.accept_length) == (20, 1.0) and found.reads_one


def test_metrics_are_counts_or_a_gauge():
    found = measured.of_reading(Counters(steps=100, drafted=300, accepted=90, accepted_per_position=[60, 30]), "m")
    assert (found.accept_length, found.survival) == (1.9, [0.6, 0.3])
    found = measured.of_reading(Counters(gauges={"sglang:spec_accept_length": 2.4}), "m")
    assert (found.accept_length, found.steps) == (2.4, None)
    assert measured.of_reading(Counters(), "m") is None


def test_server_info_and_texts_without_acceptance():
    assert measured.of_reading({"avg_spec_accept_length": 1.8}, "info").accept_length == 1.8
    assert measured.of_reading({"avg_spec_accept_length": None}, "info") is None
    assert measured.of_reading(log(), "a.log") is None


def test_a_vllm_line_end_to_end():
    line = (
        "INFO 03-11 06:16:52 [metrics.py:100] SpecDecoding metrics: Mean acceptance length: 1.90, Accepted throughput: "
        "9.00 tokens/s, Drafted throughput: 20.00 tokens/s, Accepted: 90 tokens, Drafted: 200 tokens, Per-position "
        "acceptance rate: 0.600, 0.300, Avg Draft acceptance rate: 45.0%"
    )
    found = measured.of_reading(vllm.read_log([line]), "a.log")
    assert (found.steps, found.accept_length) == (100, pytest.approx(1.9))
