"""What is decided, and what more starts would decide."""

import math

import block_rows as made
import pandas as pd
import pytest

from runners.analyse import inference, open_points


def point(speed_up, error, starts=2, df=20, pays=inference.UNDECIDED):
    row = dict(speed_up=speed_up, error=error, n_starts=starts, df=df, pays=pays)
    return row | dict(level=0.95, margin=0.03)


@pytest.mark.parametrize(
    ("row", "starts"),
    [
        (point(1.2, 0.01, pays=inference.YES), 0),
        (point(1.2, float("nan"), starts=1, df=0), 1),
        # sd of a start 0.1414; ln(1.2 / 1.03) = 0.1527: (1.96 x 0.1414 / 0.1527)^2 = 3.3, so 4 in all
        (point(1.2, 0.1), 2),
        (point(1 / 1.2, 0.1), 2),
        (point(1.0, 0.1), 82 + 2),  # inside the margin: until the interval is
        (point(1.031, 0.1), None),
    ],
)
def test_expected_starts(row, starts):
    assert open_points.expected_starts(row) == pytest.approx(starts, abs=2 if starts and starts > 50 else 0)


def test_status_says_what_is_open():
    base, sure = made.rows("b", made.series(1.0)), made.rows("x", made.series(1.5, noise=0.01))
    unsure = made.rows("y", made.series(1.02, noise=0.01))
    found = open_points.of_cells(pd.DataFrame(base + sure + unsure), margin=0.03).set_index("configuration")
    assert found.pays["x"] == inference.YES and found.pays["y"] == inference.UNDECIDED
    assert list(open_points.open_only(found).index) == ["y"] and math.isfinite(found.error["y"])


def test_nothing_measured_is_an_empty_frame(tmp_path):
    assert list(open_points.status(tmp_path, "lab-cpu").columns) == open_points.COLUMNS
