"""Accept length against what a decode step yields, from an engine's counts."""

import pytest

from runners.readers.counter_figures import figures
from runners.readers.records import Counters


def test_an_ngram_drafter_that_seldom_drafts_yields_little_however_good_its_drafts_are():
    found = figures(Counters(steps=27, drafted=150, accepted=138, output_tokens=483))
    assert found.accept_length == pytest.approx(1 + 138 / 27)
    assert found.tokens_per_step == pytest.approx(1.4)  # 483 tokens in 483 - 138 steps
    assert found.drafted_share == pytest.approx(27 / 345)
    assert found.draft_acceptance == pytest.approx(0.92)


def test_requests_are_taken_out_where_they_are_counted():
    # 10 answers of 100 tokens: 990 decode tokens, 330 of them drafts; of 660 steps 330 had a draft.
    found = figures(Counters(steps=330, drafted=990, accepted=330, output_tokens=1000, requests=10))
    assert found.tokens_per_step == pytest.approx(1.5) and found.drafted_share == pytest.approx(0.5)


def test_first_tokens_are_not_taken_for_steps_without_a_draft():
    # 50 answers of 20 tokens by a drafter model: 450 steps, 500 accepted, 50 first tokens that nobody counted apart.
    found = figures(Counters(steps=450, drafted=1350, accepted=500, output_tokens=1000))
    assert found.tokens_per_step == found.accept_length and found.drafted_share is None


def test_counted_steps_and_tokens_give_the_length_where_accepted_tokens_are_not_exported():
    found = figures(Counters(steps=600, output_tokens=1000, requests=10))
    assert found.accept_length == pytest.approx(1.65) and found.draft_acceptance is None
    assert figures(Counters(steps=600, output_tokens=100)).accept_length is None  # they do not fit


def test_positions_and_k():
    found = figures(Counters(steps=100, drafted=300, accepted=90, accepted_per_position=[60, 20, 10]))
    assert found.per_position == [0.6, 0.2, 0.1] and found.k == 3 and found.tokens_per_step == found.accept_length


def test_without_speculation_nothing_is_said():
    found = figures(Counters(output_tokens=500))
    assert (found.accept_length, found.tokens_per_step, found.draft_acceptance) == (None, None, None)
    assert figures(Counters(steps=0, drafted=0, accepted=0, output_tokens=500)).accept_length is None
