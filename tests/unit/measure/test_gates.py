"""Each gate, on made-up answers and figures: None when it holds, the reason when it does not."""

import pytest

from runners.measure import gates
from runners.measure.client import Result
from runners.profiles.schema import Gates


def result(text, tokens=4, **kwargs):
    return Result("p", 0, 0, 0.1, 0.2, 3, tokens, "usage", "length", text=text, **kwargs)


def test_completed():
    assert gates.completed([result("a")], 1) is None
    assert "1 of 2 requests failed, first: broke" in gates.completed([result("a"), result("", error="broke")], 2)


def test_counted():
    assert gates.counted([result("a")], 4) is None
    assert "not 5 tokens long" in gates.counted([result("a")], 5)


def test_language():
    assert gates.distinct_bigrams(["a b a b a b a b a b"]) < 0.25
    assert gates.distinct_bigrams(["one two three four five six"]) == 1
    assert gates.language(0.1, 0.2) and gates.language(None, 0.2) and gates.language(0.5, 0.2) is None


@pytest.mark.parametrize(
    ("a", "b", "share"), [("abcd", "abcd", 1), ("abxx", "abcd", 0.5), ("", "", 1), ("", "a", 0), ("ab", "abcd", 1)]
)
def test_equal_prefix(a, b, share):
    assert gates.prefix_share(a, b) == share


def test_same_text():
    assert gates.equal_shares([result("abcd")], {"p": ["abxx"]}) == [0.5]
    assert gates.equal_shares([result("abcd")], {"p": ["abxx", "abcd"]}) == [1], "the nearest of the base's own answers"
    assert gates.equal_shares([result("abcd")], {}) == [] == gates.equal_shares([result("a", error="x")], {"p": ["a"]})
    assert "equal prefix 0.20 over 16 answers, floor 0.50" in gates.same_text([0.2] * 16, 0.5, "base's")
    assert gates.same_text([0.2] * 3, 0.5, "") is None, "three answers with early ties prove nothing"
    assert gates.same_text([0.02] * 3, 0.5, ""), "another model shares next to nothing"
    assert gates.same_text([], 0.5, "") is None and gates.same_text([0.2], None, "") is None


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


def test_quiet():
    assert "other work used 0.50 cores" in gates.quiet(0.5, 0.0, Gates())
    assert gates.quiet(0.5, 0.2, Gates(check_neighbours=False)) is None
    assert "steal 20.0%" in gates.quiet(0.0, 0.2, Gates())
    assert gates.quiet(0.0, 0.0, Gates()) is None


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
