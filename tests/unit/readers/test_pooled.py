"""Acceptance lines of one log taken together."""

import pytest

from runners.readers.pooled import pool, steps_of, telling
from runners.readers.records import AcceptanceRecord


def line(length, accepted, drafted, positions=None, **more):
    return AcceptanceRecord("", length, accepted=accepted, drafted=drafted, per_position=positions, **more)


def test_sums_and_not_means():
    found = pool([line(2.0, 100, 300, [0.6, 0.3, 0.1]), line(1.1, 30, 900, [0.1, 0.0, 0.0])])
    assert found.draft_acceptance == pytest.approx(130 / 1200)
    assert found.accept_length == pytest.approx(1 + 130 / 400)  # 100 and 300 steps
    assert found.per_position == pytest.approx([(60 + 30) / 400, 30 / 400, 10 / 400])


def test_a_line_with_a_length_of_one_is_weighted_by_what_the_others_draft_a_step():
    found = pool([line(2.0, 100, 300), line(1.0, 0, 300)])
    assert found.accept_length == pytest.approx(1.5)
    assert steps_of(line(1.0, 0, 300)) is None and steps_of(line(1.0, 0, 300, [0.0] * 3)) == 100


def test_lines_without_counts_are_weighted_by_their_running_requests():
    found = pool([line(2.0, None, None, running=30), line(1.0, None, None, running=10)])
    assert found.accept_length == pytest.approx(1.75) and found.running == 20
    assert (found.drafted, found.accepted, found.draft_acceptance) == (None, None, None)


def test_the_throughput_of_an_idle_line_is_left_out_and_its_acceptance_kept():
    found = pool([line(2.0, None, None, throughput=0.39, idle=True), line(1.5, None, None, throughput=80.0)])
    assert (found.lines, found.throughput, found.throughput_left_out) == (2, 80.0, 1)
    assert found.accept_length == pytest.approx(1.75)


def test_a_line_that_nothing_was_drafted_for_tells_nothing():
    nothing = line(None, 0, 0, idle=True)
    assert telling([nothing]) == [] and pool([nothing]).lines == 0
