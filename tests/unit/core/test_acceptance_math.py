"""The acceptance formulas, each against numbers done by hand."""

import math

import pytest

from runners.core import acceptance_math


def test_lengths_and_rates_by_hand():
    # 100 steps, 3 drafted each, 65 accepted: the third-party drafter of the case.
    al = acceptance_math.accept_length(100, 65)
    assert al == pytest.approx(1.65)
    assert acceptance_math.draft_acceptance(300, 65) == pytest.approx(0.2167, abs=1e-4)
    assert acceptance_math.sglang_rate_old(al, 4) == pytest.approx(0.4125)
    assert acceptance_math.sglang_rate_new(al, 4) == pytest.approx(0.2167, abs=1e-4)


def test_survival_and_conditional():
    assert acceptance_math.survival([60, 30, 15], 100) == pytest.approx([0.6, 0.3, 0.15])
    assert acceptance_math.conditional([60, 30, 15], 100) == pytest.approx([0.6, 0.5, 0.5])
    after_zero = acceptance_math.conditional([0, 0], 100)
    assert after_zero[0] == 0 and math.isnan(after_zero[1])


def test_no_steps_is_not_a_number_and_no_error():
    assert math.isnan(acceptance_math.accept_length(0, 0))
    assert math.isnan(acceptance_math.draft_acceptance(0, 0))


@pytest.mark.parametrize(("a", "k", "expected"), [(0.0, 3, 1.0), (1.0, 3, 4.0), (0.5, 3, 1.875), (0.8, 1, 1.8)])
def test_expected_accept_length(a, k, expected):
    assert acceptance_math.expected_accept_length(a, k) == pytest.approx(expected)


def test_what_is_not_known_is_not_a_number():
    assert math.isnan(acceptance_math.accept_length(None, 3)) and math.isnan(acceptance_math.accept_length(3, None))
    assert math.isnan(acceptance_math.accept_length(float("nan"), 3))
