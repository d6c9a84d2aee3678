"""Charts: valid specifications that show the voids, or a sentence where there is nothing to draw."""

import json

import pytest
import synthetic_runs

from runners.analyse import acceptance, results, step_cost, summarise
from runners.core import format
from runners.report.charts import acceptance as acceptance_charts
from runners.report.charts import step_cost as step_cost_charts
from runners.report.charts import style
from runners.report.charts import throughput as throughput_charts

PROFILE = synthetic_runs.PROFILE
pytestmark = pytest.mark.slow  # all wait for the intervals of a whole synthetic run


def _charts(runs):
    cells, requests = results.cells(runs, PROFILE), results.requests(runs, PROFILE)
    summary = summarise.summarise(cells)
    return {
        "throughput": throughput_charts.throughput(summary, cells),
        "stream": throughput_charts.stream(summary, cells),
        "survival": acceptance_charts.survival(acceptance.pooled(cells)),
        "breakeven": step_cost_charts.break_even(step_cost.step_costs(cells, requests)),
    }


@pytest.fixture(scope="module")
def specs(tmp_path_factory):
    runs = synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=3, prompts=8)
    return {name: chart.to_dict() for name, chart in _charts(runs).items()}


def test_every_chart_is_valid_and_deterministic(specs, tmp_path):
    runs = synthetic_runs.write(tmp_path, repeats=3, prompts=8)
    again = {name: chart.to_dict() for name, chart in _charts(runs).items()}
    assert json.dumps(again, sort_keys=True) == json.dumps(specs, sort_keys=True)


def _marks(spec):
    if isinstance(spec, dict):
        if isinstance(spec.get("mark"), dict):
            yield spec["mark"]
        for value in spec.values():
            yield from _marks(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from _marks(value)


def test_void_cells_are_hollow_points_with_their_reason(specs):
    hollow = [m for m in _marks(specs["throughput"]) if m["type"] == "point" and m.get("filled") is False]
    assert len(hollow) == 1
    assert "machine busy" in json.dumps(specs["throughput"])
    assert "void cells" in json.dumps(specs["throughput"]["title"])


def test_intervals_are_drawn(specs):
    for name in ("throughput", "stream", "breakeven"):
        assert any(m["type"] == "rule" for m in _marks(specs[name]))


def test_colours_belong_to_methods(specs):
    text = json.dumps(specs["throughput"])
    for method in ("none", "ngram", "eagle3"):  # those that the made-up runs hold
        assert style.COLOURS[method] in text and style.METHODS[method] in text


def test_the_untrained_drafter_shows_its_zeros(specs):
    rows = [r for data in specs["survival"]["datasets"].values() for r in data]
    control = [r for r in rows if r.get("configuration") == "llamacpp-eagle3-untrained"]
    assert control and {r["survival"] for r in control} == {0.0}


def test_nothing_measured_is_said(tmp_path):
    for chart in _charts(tmp_path).values():
        assert format.NOT_MEASURED in json.dumps(chart.to_dict())


def test_the_theme_is_light_and_brings_no_address():
    config = style.theme()["config"]
    assert config["background"] == "white" and "http" not in json.dumps(config)
