"""Each gate, on made-up answers and figures: None when it holds, the reason when it does not."""

import dataclasses

import pytest

from runners.measure import gates
from runners.measure.client import Result


def result(text, tokens=4, **kwargs):
    return Result("p", 0, 0, 0.1, 0.2, 3, tokens, "usage", "length", text=text, **kwargs)


def test_completed():
    assert gates.completed([result("a")], 1) is None
    assert "1 of 2 requests failed, first: broke" in gates.completed([result("a"), result("", error="broke")], 2)


def test_requests_of_the_ramp_and_cut_ones_are_beside_those_that_were_asked_for():
    results = [result("a", role="ramp"), result("a"), result("a"), result("a", role="cut")]
    assert gates.completed(results, 3) is None
    assert gates.completed(results, 4) == "3 of 4 requests were sent"
    assert "1 of 5 requests failed" in gates.completed([*results, result("", error="broke", role="ramp")], 2)


def test_counted():
    assert gates.counted([result("a")], 4) is None
    assert "not 5 tokens long" in gates.counted([result("a")], 5)
    assert gates.counted([result("a"), result("a", tokens=2, role="ramp")], 4) is None, "a ramp's answers are shorter"
    cut = dataclasses.replace(result("a", role="cut"), count_source=None, output_tokens=None)
    assert gates.counted([result("a"), cut], 4) is None, "a cut answer has no end, and no count"
    assert "no token count" in gates.counted([dataclasses.replace(cut, role="ramp")], 4)


@pytest.mark.parametrize(
    ("tokens", "reason", "fault"),
    [
        (4, "length", None),
        (1, "stop", None),
        (2, "tool_calls", None),
        (0, "stop", "1 answers are not 1 to 4 tokens long with an end of their own (p has 0)"),
        (5, "length", "1 answers are not 1 to 4 tokens long"),
        (2, "length", "1 answers are not 1 to 4 tokens long"),
        (2, None, "1 answers are not 1 to 4 tokens long"),
    ],
)
def test_an_answer_may_end_by_itself_where_the_profile_says_so(tokens, reason, fault):
    answer = dataclasses.replace(result("a", tokens=tokens), finish_reason=reason)
    found = gates.counted([answer], 4, natural_ends=True)
    assert found is None if fault is None else found.startswith(fault)


def test_occupied():
    assert gates.occupied(14.2 / 16, 16) == "mean requests in flight 14.2 of 16 (0.89), floor 0.95"
    assert gates.occupied(0.95, 16) is None and gates.occupied(14.2 / 16, 16, floor=0.8) is None
    assert gates.occupied(None, 16) is None, "without a window there is nothing to be outside of"


@pytest.mark.parametrize(
    ("peak", "concurrency", "cap", "void", "capped"),
    [
        (4, 4, 16, False, None),
        (3, 4, 16, True, None),
        (2, 4, 2, False, 2),
        (None, 4, 16, True, None),
        (1, 4, 2, True, 2),
    ],
)
def test_concurrency(peak, concurrency, cap, void, capped):
    assert bool(gates.held_concurrency(peak, concurrency, cap)) == void
    assert gates.capped_at(concurrency, cap) == capped


def test_client():
    assert gates.client_kept_up(0.1, 1.0) is None and "30% of a core" in gates.client_kept_up(0.3, 1.0)


@pytest.mark.parametrize("cores, word", [(1.9, "livelock"), (0.0, "stall"), (None, None)])
def test_a_mute_server_is_named_by_what_it_does(cores, word):
    mute = [Result("a", 0.0, 0.0, error="no byte for 300 s")]
    found = gates.produced_tokens(mute, cores)
    assert (found or "").startswith(word or "") and (found is None) == (word is None)
    assert gates.produced_tokens([Result("a", 0.0, 0.0, first_token_s=1.0)], 0.0) is None


def test_counts_agree():
    assert gates.counts_agree(None, 1000) is None, "an engine without a counter cannot contradict"
    assert gates.counts_agree(1040, 1000) is None and gates.counts_agree(960, 1000) is None
    assert gates.counts_agree(1060, 1000) == "the server counted 1060 output tokens, the client 1000"
    assert gates.counts_agree(1, 0)


@pytest.mark.parametrize(
    "steps, accepted, reason", [(100, 100, None), (100, 0, "the counters show 1.00"), (0, 0, "show no step")]
)
def test_synthetic_accept_length(steps, accepted, reason):
    found = gates.synthetic_accept_length_held(2.0, steps, accepted)
    assert found is None if reason is None else reason in found
    assert gates.synthetic_accept_length_held(None, 0, 0) is None


def test_a_server_that_runs_more_than_was_sent_is_shared():
    assert "more than the 4 that were sent: it is shared" in gates.held_concurrency(5, 4, 16)
