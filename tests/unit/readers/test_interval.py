"""Two snapshots of one server: order, length, rates, restarts."""

import pytest

from runners.core.errors import UserError
from runners.readers.interval import CLOCK, FILES, GIVEN, ROWS, Snapshot, between, in_order, intervals
from runners.readers.records import Counters


def snapshot(name, tokens, at=None, time_from=FILES, running=1.0, **more):
    counts = Counters(
        steps=tokens // 2,
        drafted=tokens,
        accepted=tokens // 4,
        output_tokens=tokens,
        running=running,
        source="vllm /metrics",
    )
    return Snapshot(name, counts, at, time_from, **more)


def test_counts_become_rates_over_the_interval():
    found = between(snapshot("a", 1000, 100.0, running=2.0), snapshot("b", 1600, 110.0, running=4.0))
    assert (found.seconds, found.time_from) == (10.0, FILES)
    assert (found.tokens_per_second, found.steps_per_second) == (60.0, 30.0)
    assert found.figures.accept_length == pytest.approx(1 + 150 / 300)
    assert found.running == (2.0, 4.0) and found.mean_running == 3.0


def test_a_given_length_wins_and_an_unknown_one_gives_no_rate():
    a, b = snapshot("a", 1000, 100.0), snapshot("b", 1600, 100.1)  # copies: no time between them
    assert between(a, b).seconds is None and between(a, b).tokens_per_second is None
    found = between(a, b, 30)
    assert (found.seconds, found.time_from, found.tokens_per_second) == (30, GIVEN, 20.0)


def test_times_of_rows_and_of_files_are_never_mixed():
    assert between(snapshot("a", 1, 100.0, ROWS), snapshot("b", 2, 160.0)).seconds is None
    assert between(snapshot("a", 1, 100.0), snapshot("b", 2, 160.0, CLOCK)).seconds == 60


@pytest.mark.parametrize("times", [(5.0, 1.0), (1.0, 5.0), (None, None), (3.0, 3.0)])
def test_snapshots_are_put_in_order_whatever_order_they_come_in(times):
    early, late = snapshot("early", 100, times[0]), snapshot("late", 200, times[1])
    for given in ([early, late], [late, early]):
        if times == (5.0, 1.0) and given[0] is late:
            continue  # both the order given and the files' times say so: that is a restart
        assert [s.name for s in in_order(given)] == ["early", "late"]


def test_rows_that_tell_their_time_decide():
    early, late = snapshot("early", 200, 1.0, ROWS), snapshot("late", 100, 5.0, ROWS)
    assert in_order([late, early]) == [early, late]
    with pytest.raises(UserError, match="restarted between early and late"):
        intervals([late, early])


def test_a_restart_is_said_in_a_sentence():
    with pytest.raises(UserError, match="restarted between a and b"):
        intervals([snapshot("a", 200, 1.0), snapshot("b", 100, 60.0)])
    a, b = snapshot("a", 100, 1.0, started=1000.0), snapshot("b", 200, 60.0, started=2000.0)
    with pytest.raises(UserError, match="restarted between a and b"):
        between(a, b)


def test_three_snapshots_are_two_intervals_and_seconds_fit_two_only():
    three = [snapshot("a", 10, 0.0), snapshot("b", 30, 10.0), snapshot("c", 40, 20.0)]
    assert [i.tokens_per_second for i in intervals(three)] == [2.0, 1.0]
    with pytest.raises(UserError, match="--seconds"):
        intervals(three, 10)


def test_a_short_interval_by_the_clock_is_one():
    found = between(snapshot("a", 10, 100.0, CLOCK), snapshot("b", 20, 100.25, CLOCK))
    assert (found.seconds, found.tokens_per_second) == (0.25, 40.0)
