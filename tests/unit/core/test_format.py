"""How figures are written."""

import math

import pandas as pd
import pytest

from runners.core import format


@pytest.mark.parametrize("value", [None, math.nan, pd.NA, pd.NaT])
def test_what_is_missing_is_a_dash_in_every_form(value):
    assert format.is_missing(value)
    assert format.percent(value) == format.number(value) == "-"
    assert format.interval_text(value, 1, 2) == format.NOT_MEASURED


@pytest.mark.parametrize("value", [0, 0.0, -1, False])
def test_zero_is_not_missing(value):
    assert not format.is_missing(value)


def test_figures_have_separators_and_their_decimals():
    assert format.percent(0.1234) == "12.3%" and format.percent(0.5, 0) == "50%"
    assert format.number(1234.567) == "1,234.57" and format.number(1234.567, 0) == "1,235"
    assert format.interval_text(1.05, 1.02, 1.08) == "1.05 [1.02, 1.08]"
    assert format.interval_text(1.05, None, None) == "1.05"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.0, "1,234"), (3, "3"), (23.456, "23.5"), (1.234, "1.23"), (0.01234, "0.0123"), (-25.5, "-25.5")],
)
def test_a_figure_keeps_its_significant_digits(value, text):
    assert format.significant_text(value) == text


def test_times_names_and_keys():
    assert (format.minutes(89), format.minutes(90), format.minutes(600)) == ("89 s", "2 min", "10 min")
    assert format.listed([]) == "none" and format.listed(["a", 2]) == "a, 2"
    assert format.slug("vLLM: EAGLE-3 (K = 3)") == "vllm_eagle_3_k_3"
