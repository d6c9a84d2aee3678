"""Ratios of any two points: within blocks, along a chain of bases, or unpaired; never across campaigns."""

import math

import numpy as np
import pandas as pd
import pytest
from block_rows import rows, series

from runners.analyse import blocks, comparisons, inference, repeated_looks
from runners.analyse.blocks import Point
from runners.analyse.comparisons import Data


def made(*parts):
    return Data(pd.DataFrame([row for part in parts for row in part]))


def test_a_ratio_is_made_within_its_block():
    data = made(rows("b", series(1.0)), rows("x", series(1.2, noise=0.01)))
    found = comparisons.ratio(data, ("x", "chat", 1), ("b", "chat", 1))
    assert found.ratio == pytest.approx(1.2, rel=0.01) and found.starts == 3
    assert found.interval()[0] > 1.1  # the drift of 100% between starts is in both sides
    assert found == comparisons.over_base(data, Point("x", "chat", 1))
    low, high = comparisons.ratio(data, ("b", "chat", 1), ("x", "chat", 1)).interval()
    assert (1 / high, 1 / low) == pytest.approx(found.interval())


def test_blocks_of_two_campaigns_are_never_paired():
    data = made(rows("b", series(1.0), "one"), rows("x", series(1.2), "two"))
    found = comparisons.ratio(data, ("x", "chat", 1), ("b", "chat", 1))
    assert math.isnan(found.log_ratio) and found.answer(0.03) == inference.UNDECIDED


def test_void_cells_are_on_no_side():
    bad = [row | {"status": "void"} for row in rows("b", series(1.0))]
    assert math.isnan(comparisons.over_base(made(bad, rows("x", series(1.2))), Point("x", "chat", 1)).log_ratio)


def test_without_a_common_block_the_chain_over_the_base_is_used():
    """x and y are measured in other blocks, each beside the base: the drift stays out, and variances add."""
    first, second = series(1.0), [(s, s + 10, v) for s, _, v in series(1.0, drift=(0.5, 2.0, 1.0))]
    x = [(s, b, v * 1.2 * math.exp(0.02 * s)) for s, b, v in first]
    y = [(s, b, v * 1.1 * math.exp(0.02 * s)) for s, b, v in second]
    data = made(rows("b", first), rows("b", second), rows("x", x), rows("y", y))
    found = comparisons.ratio(data, ("x", "chat", 1), ("y", "chat", 1))
    links = [comparisons.over_base(data, Point(name, "chat", 1)) for name in "xy"]
    assert found.ratio == pytest.approx(1.2 / 1.1) and found.error == pytest.approx(np.hypot(*(e.error for e in links)))


def test_points_of_other_concurrencies_are_compared_by_starts():
    data = made(rows("b", series(1.0)), rows("b", series(3.0, noise=0.01), concurrency=4))
    found = comparisons.ratio(data, ("b", "chat", 4), ("b", "chat", 1))
    assert found.ratio == pytest.approx(3.0, rel=0.02) and found.interval()[0] < 2.0  # the drift is not paired away


def test_one_start_is_undecided():
    data = made(rows("b", series(1.0, starts=1)), rows("x", series(9.0, starts=1)))
    found = comparisons.ratio(data, ("x", "chat", 1), ("b", "chat", 1))
    assert found.ratio == pytest.approx(9.0) and found.answer(0.03) == inference.UNDECIDED


def test_with_two_campaigns_the_campaign_is_the_unit():
    parts = []
    for name, shift in (("one", 1.0), ("two", 1.3)):
        parts += rows("b", series(1.0), name) + rows("x", series(1.2 * shift, noise=0.01), name)
    found = comparisons.over_base(made(parts), Point("x", "chat", 1))
    assert (found.campaigns, found.starts) == (2, 6) and inference.unit(found) == inference.CAMPAIGNS
    assert found.df == 1 and found.interval()[0] < 1  # starts agree to 1%, campaigns do not


def test_a_campaign_that_looks_again_and_again_asks_for_more():
    base, own = rows("b", series(1.0), "one", most=5), rows("x", series(1.2, noise=0.01), "one", most=5)
    found = comparisons.over_base(made(base, own), Point("x", "chat", 1))
    assert found.level == repeated_looks.level(3, 5) > 0.95
    plain = comparisons.over_base(
        made(rows("b", series(1.0), "one"), rows("x", series(1.2, noise=0.01), "one")), Point("x", "chat", 1)
    )
    assert plain.level == 0.95 and found.interval()[0] < plain.interval()[0] and found.p_value() > plain.p_value()


def test_old_rows_pair_by_round_and_repeat():
    cells = pd.DataFrame(rows("b", [(0, 0, 1.0), (1, 1, 1.0), (0, 3, 1.0)]))
    old = blocks.numbered(cells.drop(columns=["campaign", "start", "block"]))
    assert list(old.campaign) == ["", "", ""] and list(old.start) == [0, 1, 0] and list(old.block) == [0, 1, 3]
