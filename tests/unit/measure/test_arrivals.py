"""Arrivals of the open loop: a Poisson process that is the same for everyone who asks with the same seed."""

import numpy as np
import pytest

from runners.measure.arrivals import arrivals, rates, saturation, seed_of
from runners.profiles.latency import OpenLoop


def test_arrivals_are_a_poisson_process():
    times = np.array(arrivals(2.0, 5_000, seed=1))
    gaps = np.diff(times)
    assert len(times) / 5_000 == pytest.approx(2.0, rel=0.05)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05), "exponential: as wide as its mean"
    assert np.mean(gaps > gaps.mean()) == pytest.approx(np.exp(-1), abs=0.02)
    counts = np.histogram(times, bins=np.arange(0, 5_001))[0]
    assert counts.var() == pytest.approx(counts.mean(), rel=0.1)


def test_arrivals_rise_within_the_window_and_are_the_same_again():
    times = arrivals(3.0, 20, seed=7)
    assert times == sorted(times) and times[0] >= 0 and times[-1] < 20
    assert times == arrivals(3.0, 20, seed=7) != arrivals(3.0, 20, seed=8)
    # A longer window begins as the shorter one: all times are from one stream.
    assert arrivals(3.0, 30, seed=7)[: len(times)] == times
    assert arrivals(0.001, 1, seed=1) == []
    # Written down, so that another version of Python cannot change them unseen.
    assert arrivals(1.0, 3.5, seed=0) == pytest.approx([1.8606071110652234, 3.279236264036985])


def test_a_seed_is_of_campaign_workload_rate_and_block():
    one = seed_of("a", "chat", 0.5, 0)
    assert one == seed_of("a", "chat", 0.50, 0)
    others = [seed_of("b", "chat", 0.5, 0), seed_of("a", "edit", 0.5, 0), seed_of("a", "chat", 1, 0)]
    assert len({one, *others, seed_of("a", "chat", 0.5, 1)}) == 5


def row(speed, **changes):
    whole = {"status": "ok", "workload": "chat", "output_tokens_per_second": speed, "output_tokens_per_request": 64}
    return whole | changes


def test_auto_rates_are_shares_of_the_fastest_closed_loop():
    rows = [row(64.0), row(128.0), row(640.0, status="void"), row(640.0, load="open"), row(640.0, workload="edit")]
    assert saturation(rows, "chat") == 2.0
    assert rates(OpenLoop(), rows, "chat") == [0.6, 1.0, 1.4, 1.7, 2.0]
    assert rates(OpenLoop(rates=[0.5, 1]), rows, "chat") == [0.5, 1.0]
    assert rates(OpenLoop(), [], "chat") == []
    assert rates(OpenLoop(), [row(None)], "chat") == []
