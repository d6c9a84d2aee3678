"""Who is not clearly behind, the simplest of them, and a mix of workloads."""

import math
from dataclasses import replace

import pytest

from runners.analyse.inference import Estimate
from runners.analyse.verdict import choose
from runners.analyse.verdict.choose import Contender


def contender(name, value, method="none", k=None):
    return Contender(name, "engine", method, k, "INT4", 1, value, value, value, 1.0)


BASE = contender("base", 100.0)
NGRAM = contender("ngram", 104.0, "ngram", 5)
K3 = contender("k3", 108.0, "eagle3", 3)
K1 = contender("k1", 106.0, "eagle3", 1)


def lead(error, df=50.0):
    """Ratios of the values, all with one standard error."""
    return lambda upper, lower: Estimate(math.log(upper.value / lower.value), error, df)


def names(choice):
    return [c.configuration for c in choice.among]


@pytest.mark.parametrize(
    ("contenders", "serve", "reason"),
    [
        ([K3, BASE, NGRAM, K1], "base", "it does not speculate"),
        ([K3, NGRAM, K1], "ngram", "it needs no drafter"),
        ([K1, contender("ahead", 107.0, "eagle3", 1)], "ahead", "it was the fastest, and none of them is simpler"),
        ([K3, K1], "k1", "it drafts fewer tokens"),
        ([BASE, contender("other", 101.0)], "other", "it was the fastest, and it does not speculate"),
    ],
)
def test_where_nobody_is_clearly_behind_the_simplest_is_the_choice(contenders, serve, reason):
    choice = choose.choose(contenders, lead(0.1), margin=0.03)
    assert choice.clear is False and choice.behind is None and len(choice.among) == len(contenders)
    assert choice.serve.configuration == serve and reason in choice.reason
    assert names(choice)[0] == max(contenders, key=lambda c: c.value).configuration


def test_a_clear_lead_is_a_winner_without_a_reason():
    choice = choose.choose([BASE, K3], lead(0.01), margin=0.03)
    assert (choice.clear, choice.reason, choice.serve, choice.behind) == (True, "", K3, BASE)


def test_a_lead_within_the_practical_margin_is_none():
    assert choose.choose([BASE, NGRAM], lead(0.001), margin=0.05).serve is BASE
    assert choose.choose([BASE, NGRAM], lead(0.001), margin=0.03).serve is NGRAM


def test_an_unknown_error_leaves_everybody_in():
    assert choose.choose([BASE, K3], lead(math.nan, 0.0), margin=0.03).among == (K3, BASE)


def test_one_alone_is_neither_clear_nor_unclear():
    choice = choose.choose([BASE], lead(0.01), margin=0.03)
    assert choice.clear is None and choice.serve is BASE


def test_many_comparisons_take_wider_intervals_than_one():
    close = 1.08 / 1.04 / 1.0  # of K3 over NGRAM
    error = math.log(close / 1.0) / 2.05  # just clear in one comparison
    assert choose.choose([K3, NGRAM], lead(error), margin=0.0).clear
    crowd = [replace(NGRAM, configuration=f"same{i}") for i in range(5)]
    assert not choose.choose([K3, NGRAM, *crowd], lead(error), margin=0.0).clear


def test_those_far_behind_cost_the_close_ones_nothing():
    error = math.log(1.08 / 1.04) / 2.05
    far = [contender(f"far{i}", 10.0) for i in range(9)]
    assert names(choose.choose([K3, NGRAM, *far], lead(error), margin=0.0)) == ["k3"]


def test_a_mix_is_the_rate_of_doing_all_of_it():
    assert choose.mixed_speed([0.5, 0.5], [10.0, 30.0]) == pytest.approx(15.0)
    lower, upper = [10.0, 30.0], [20.0, 30.0]
    ratios = [Estimate(math.log(a / b), 0.1, 20.0) for a, b in zip(upper, lower, strict=True)]
    mixed = choose.mixed_ratio([0.5, 0.5], lower, ratios)
    assert mixed.ratio == pytest.approx(choose.mixed_speed([0.5, 0.5], upper) / choose.mixed_speed([0.5, 0.5], lower))
    low, high = mixed.interval()
    assert math.log(high / mixed.ratio) == pytest.approx(math.log(ratios[0].interval()[1] / ratios[0].ratio))
    assert low < mixed.ratio < high and mixed.level == 0.95
    unknown = choose.mixed_ratio([0.5, 0.5], lower, [ratios[0], Estimate(0.0, math.nan, 0.0)])
    assert math.isnan(unknown.interval()[0]) and not math.isnan(unknown.ratio)
