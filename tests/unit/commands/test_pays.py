"""The answer at a known step cost ratio: by its interval where it has one, by the margin where it has none."""

import pytest

from runners.commands.pays import StepCost, judge, judged


def cost(r, lo=None, hi=None, concurrency=None):
    return StepCost(r, lo, hi, 0.03, "--r", concurrency)


@pytest.mark.parametrize(
    ("yields", "at", "answer"),
    [
        (2.0, cost(1.6), "yes"),
        (1.65, cost(1.67), "no difference"),
        (1.0, cost(1.56), "no"),
        (2.0, cost(1.6, 1.5, 1.7), "yes"),
        (1.65, cost(1.6, 1.5, 1.7), "undecided"),
        (1.60, cost(1.6, 1.59, 1.61), "no difference"),
        (1.4, cost(1.6, 1.5, 1.7), "no"),
    ],
)
def test_the_answer(yields, at, answer):
    found = judge(yields, at)
    assert (found.answer, found.speed_up) == (answer, yields / at.r)
    if at.lo:
        assert (found.lo, found.hi) == (yields / at.hi, yields / at.lo)
    assert f"{found.speed_up:.2f}" in found.words and "--r" in found.words


def test_the_nearest_load_counts_by_its_ratio():
    costs = [cost(1.2, concurrency=1), cost(1.5, concurrency=4), cost(3.0, concurrency=16)]
    assert [p.cost.concurrency for p in judged(2.0, costs, 7)] == [4]
    assert [p.cost.concurrency for p in judged(2.0, costs, 9)] == [16]
    assert [p.answer for p in judged(2.0, costs, None)] == ["yes", "yes", "no"]
    assert len(judged(2.0, [cost(1.6)], 9)) == 1
