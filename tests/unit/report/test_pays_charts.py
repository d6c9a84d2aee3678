"""The grid and the forest of all answers: every point is there with its answer in words, void ones too."""

import json

import pandas as pd

from runners.core.format import NOT_MEASURED
from runners.report.charts import pays

POINTS = pd.DataFrame(
    [
        ["x", "e", "eagle3", "chat", 1, 1.3, 1.1, 1.5, "yes"],
        ["x", "e", "eagle3", "chat", 16, 0.4, 0.3, 0.5, "no"],
        ["y", "e", "ngram", "edit", 1, 1.0, 0.99, 1.01, "no difference"],
        ["y", "e", "ngram", "edit", 16, 1.1, float("nan"), float("nan"), "undecided"],
    ],
    columns=["configuration", "engine", "method", "workload", "concurrency"]
    + ["speed_up", "speed_up_lo", "speed_up_hi", "pays"],
)
VOID = pd.DataFrame({"configuration": ["y"], "workload": ["chat"], "concurrency": [4]})


def rows(chart):
    return [row for data in chart.to_dict()["datasets"].values() for row in data]


def test_the_grid_says_every_answer_in_words():
    found = {(r["configuration"], r["workload"], r["C"]): r["answer"] for r in rows(pays.grid(POINTS, VOID))}
    assert found == {
        ("x", "chat", 1): "pays",
        ("x", "chat", 16): "loses",
        ("y", "edit", 1): "same",
        ("y", "edit", 16): "open",
        ("y", "chat", 4): "void",
    }


def test_dark_cells_have_white_text():
    ink = {r["C"]: r["ink"] for r in rows(pays.grid(POINTS)) if r["configuration"] == "x"}
    assert ink[16] == "#ffffff" != ink[1]


def test_the_forest_has_every_ratio_with_its_interval_and_the_margin():
    chart = pays.forest(POINTS, 0.03)
    found = [row for row in rows(chart) if "point" in row]
    assert {row["point"] for row in found} == {"x · C=1", "x · C=16", "y · C=1", "y · C=16"}
    assert any(row.get("low") == 0.97 for row in rows(chart)) and "3%" in json.dumps(chart.to_dict())


def test_nothing_measured_is_said():
    none = pays.answered({"points": []})
    for chart in (pays.grid(none, VOID.head(0)), pays.forest(none, 0.03)):
        assert NOT_MEASURED in json.dumps(chart.to_dict())


def test_a_point_is_lost_where_every_cell_is_void():
    cells = pd.DataFrame(
        {
            "configuration": ["x", "x", "b", "y"],
            "workload": "chat",
            "concurrency": [1, 1, 1, 1],
            "method": ["eagle3", "eagle3", "none", "ngram"],
            "status": ["void", "ok", "void", "void"],
        }
    )
    assert pays.lost(cells)["configuration"].tolist() == ["y"]
