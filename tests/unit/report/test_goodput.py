"""Goodput as readers see it: sentences, tables and charts from made-up loads."""

import json

import numpy as np
import pandas as pd
import pytest

from runners.analyse import goodput as analysis
from runners.core.format import NOT_MEASURED
from runners.profiles.latency import LatencyLimits
from runners.report.chapters.payoff import goodput
from runners.report.charts import goodput as charts

LIMITS = LatencyLimits(ttft_ms=1000, tpot_ms=50)


def point(configuration, concurrency, needs, speed, **changes):
    whole = {"configuration": configuration, "engine": "e", "method": "none", "workload": "chat", "load": "closed"}
    whole |= {"concurrency": concurrency, "rate": np.nan, "requests": 40, "blocks": 5, "needs": needs}
    whole |= {"attained_blocks": 5 if needs <= 1 else 0, "attainment": 0.95 if needs <= 1 else 0.5}
    return whole | {"requests_per_second": speed / 64, "tokens_per_second": speed} | changes


POINTS = pd.DataFrame(
    [
        point("plain", 1, 0.5, 70.0),
        point("plain", 4, 1.2, 90.0, attained_blocks=2),
        point("drafting", 1, 0.7, 80.0),
        point("drafting", 4, np.inf, 60.0),
        point("drafting", 1, 1.5, 60.0, workload="edit"),
        point("drafting", 16, 0.9, 60.0, load="open", rate=1.5, attained_blocks=3),
    ]
)[analysis.POINTS]


def test_the_limits_are_said_with_the_share_that_must_keep_them():
    said = goodput.limits_sentence(LatencyLimits(ttft_ms=1000, tpot_ms=50, e2e_ms=4000))
    assert said.endswith("50 ms a token after it, 4000 ms in all; 90% of the requests must keep them.")


def test_every_load_stands_with_what_it_would_need():
    table = goodput.points_table(POINTS)
    assert table["load"].tolist() == ["C = 1", "C = 4", "C = 1", "C = 4", "C = 1", "1.5 requests/s"]
    assert table["counts"][0] == "yes" and table["counts"][3] == "no"
    assert table["counts"][1] == "no, but 2 of 5 blocks" and table["counts"][5] == "yes, but 3 of 5 blocks"
    assert table["limits it needs"][[0, 3]].tolist() == ["×0.50", "none"]


def test_the_best_and_how_the_limits_change_it():
    best = goodput.best_table(POINTS)
    assert best.configuration.tolist() == ["drafting", "drafting"] and set(best["load"]) == {"C = 1", "1.5 requests/s"}
    assert goodput.none_sentence(POINTS) == "None meets the limits at any measured load: edit."
    assert goodput.none_sentence(POINTS[POINTS.workload == "chat"]) == ""
    limits = goodput.limits_table(POINTS).set_index(["workload", "load"])
    chat = limits.loc[("chat", "C in flight")]
    assert chat["limits ×1"] == "drafting, C = 1: 80" and chat["limits ×1.25"] == "plain, C = 4: 90"
    assert limits.loc[("edit", "C in flight"), "limits ×1"] == "none"


def test_without_limits_there_is_nothing():
    found = goodput.measured(pd.DataFrame(), pd.DataFrame(), LIMITS)
    assert found.points.empty
    for chart in (
        charts.attainment(found.points, 0.9),
        charts.attainment(found.points, 0.9, "open"),
        charts.by_limit(found.by_limit),
        charts.attainment_by_limit(found.attainment, 0.9),
    ):
        assert NOT_MEASURED in json.dumps(chart.to_dict())


def test_a_chart_names_every_line_and_has_a_dash_for_each():
    for load, names in (("closed", {"plain", "drafting"}), ("open", {"drafting"})):
        spec = charts.attainment(POINTS, 0.9, load).to_dict()
        drawn = {row["configuration"] for data in spec["datasets"].values() for row in data if "place" in row}
        assert drawn == names and "strokeDash" in json.dumps(spec)
    assert len(charts.by_limit(analysis.by_limit(POINTS)).to_dict()["vconcat"]) == 2, "a panel an engine and workload"
    curves = pd.concat([POINTS[[*analysis.WHO, *analysis.LOAD]].assign(scale=s, attainment=s / 2) for s in (1.0, 2.0)])
    titles = [p["title"] for p in charts.attainment_by_limit(curves, 0.9).to_dict()["vconcat"]]
    assert titles == ["e · chat, C = 4", "e · edit, C = 1"]


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.5, 0.49, 0.2], [0.0], []])
def test_names_do_not_lie_on_each_other(values):
    placed = charts.spread(values, 0.2, 1.0)
    assert all(a - b >= 0.2 - 1e-9 for a, b in zip(placed, placed[1:], strict=False))
    assert all(0 <= place <= 1 for place in placed)
