"""Intervals, p values and answers of the block-and-start model: exact by arithmetic, honest in simulation."""

import math

import bench_inference
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from runners.analyse import inference, repeated_looks, variances
from runners.core import paths


def test_with_one_block_a_start_it_is_students_t():
    logs = [0.10, 0.14, 0.05]
    found = inference.estimate([[x] for x in logs], variances.pooled([[[x] for x in logs]]))
    low, high = found.interval()
    reach = stats.t.ppf(0.975, 2) * np.std(logs, ddof=1) / math.sqrt(3)
    assert math.log(low) == pytest.approx(np.mean(logs) - reach) and math.log(high) == pytest.approx(
        np.mean(logs) + reach
    )
    assert found.p_value() == pytest.approx(stats.ttest_1samp(logs, 0).pvalue)


def test_two_sides_without_blocks_are_the_pooled_t_test():
    a, b = [0.3, 0.5, 0.4], [0.1, 0.2, 0.0]
    known = variances.pooled([[[x] for x in a], [[x] for x in b]])
    found = inference.difference([[x] for x in a], [[x] for x in b], known)
    assert found.log_ratio == pytest.approx(0.3)
    assert found.p_value() == pytest.approx(stats.ttest_ind(a, b).pvalue)


def test_more_blocks_of_one_start_never_make_up_for_starts():
    """Starts that differ by 10% and blocks that agree: the interval stays as wide with a hundred blocks."""
    few, many = ([[m] * n for m in (0.0, 0.1, -0.1)] for n in (2, 100))
    widths = [np.diff(inference.estimate(s, variances.pooled([s])).interval())[0] for s in (few, many)]
    assert widths[0] == pytest.approx(widths[1])


def test_one_start_and_nothing_to_pool_is_undecided():
    starts = [[0.5, 0.5, 0.51]]
    found = inference.estimate(starts, variances.pooled([starts]))
    assert found.ratio == pytest.approx(math.exp(0.5033), rel=1e-3)
    assert math.isnan(found.interval()[0]) and math.isnan(found.p_value())
    assert found.answer(0.03) == inference.UNDECIDED


def test_an_earlier_campaigns_variances_may_stand_in():
    starts = [[0.5, 0.5, 0.51]]
    earlier = variances.pooled([[[0.05], [-0.05], [0.02]] for _ in range(10)])
    found = inference.estimate(starts, variances.joined(variances.pooled([starts]), earlier))
    low, high = found.interval()
    assert low < found.ratio < high and found.answer(0.03) == inference.YES


@pytest.mark.parametrize(
    ("log_ratio", "error", "answer"),
    [
        (0.20, 0.05, inference.YES),
        (-0.20, 0.05, inference.NO),
        (0.0, 0.005, inference.NO_DIFFERENCE),
        (0.0, 0.05, inference.UNDECIDED),
        (0.04, 0.01, inference.UNDECIDED),  # above 1 and not above 1 + margin
    ],
)
def test_an_answer_needs_the_whole_interval_on_its_side(log_ratio, error, answer):
    assert inference.Estimate(log_ratio, error, 30).answer(0.03) == answer


def test_nothing_measured_has_no_answer():
    nothing = variances.pooled([])
    assert inference.estimate([], nothing).answer(0.03) == inference.UNDECIDED
    assert inference.difference([[1.0]], [], nothing).answer(0.03) == inference.UNDECIDED


@pytest.mark.slow
@pytest.mark.parametrize("design", [*bench_inference.DESIGNS, *bench_inference.SEVERAL])
def test_intervals_cover_and_false_answers_are_rare(design):
    """A small seeded piece of bench_inference's table, which data/inference.csv holds whole."""
    rows = bench_inference.table(15, [design], seed=5, grid=[(0.08, 0.08)])
    named = [dict(zip(bench_inference.HEADER, row, strict=True)) for row in rows]
    assert np.mean([r["covers"] for r in named]) >= 0.93
    assert max(np.mean([r[end] for r in named]) for end in ("false_yes", "false_no")) <= 0.025


def test_the_published_table_meets_the_standard():
    """Every design at every point of the noise grid: 93% covered, 2.5% false a side (with what chance a table adds)."""
    table = pd.read_csv(paths.DATA / "inference.csv")
    held = table[~table["design"].isin(bench_inference.BEYOND)]
    assert len(held) and set(held["design"]) <= {*bench_inference.DESIGNS, *bench_inference.SEVERAL}
    assert held["covers"].min() >= 0.93
    assert held[["false_yes", "false_no"]].to_numpy().max() <= 0.025


def test_others_widen_an_interval_and_never_narrow_it():
    calm, noisy = ([[m] for m in (0.0, d, -d)] for d in (0.01, 0.3))
    together = variances.pooled([noisy, *[calm] * 5])
    alone = variances.pooled([noisy])
    assert inference.estimate(noisy, together).error >= inference.estimate(noisy, alone).error
    assert inference.estimate(calm, together).error > inference.estimate(calm, variances.pooled([calm])).error


def test_five_looks_have_the_published_bounds():
    """Lan and DeMets' O'Brien-Fleming type bounds at five equal looks, 5% two-sided: 4.88, 3.36, 2.68, 2.29, 2.03."""
    levels = repeated_looks.looks((0.2, 0.4, 0.6, 0.8, 1.0))
    bounds = [stats.norm.ppf((1 + level) / 2) for level in levels]
    assert bounds == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=0.02)


def test_one_look_is_an_ordinary_interval():
    assert repeated_looks.looks((1.0,)) == pytest.approx((0.95,), abs=0.001)
    assert repeated_looks.level(1, 1) == pytest.approx(0.95, abs=0.001)


def test_early_spending_is_near_pococks_rule():
    """Lan and DeMets' second function at five equal looks, 5% two-sided: 2.438, 2.427, 2.410, 2.397, 2.386."""
    bounds = [stats.norm.ppf((1 + repeated_looks.level(i, 5)) / 2) for i in range(1, 6)]
    assert bounds == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=0.02)


def test_looks_must_come_in_order():
    with pytest.raises(ValueError, match="increase"):
        repeated_looks.looks((0.5, 0.5))
