"""A chart's script: no text from outside can end it."""

import html.parser
import json

import altair as alt
import pandas as pd
import pytest

from runners.report.charts import style

PLANTED = "</script><script>document.title='PWNED'</script><!-- & \u2028"


class Scripts(html.parser.HTMLParser):
    """The texts of all scripts."""

    def __init__(self, document):
        super().__init__()
        self.found, self.inside = [], False
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.inside = tag == "script"
        self.found += [""] if self.inside else []

    def handle_data(self, data):
        if self.inside:
            self.found[-1] += data

    def handle_endtag(self, tag):
        self.inside = False


@pytest.fixture
def chart():
    frame = pd.DataFrame({"x": [1], "reason": [PLANTED]})
    return alt.Chart(frame, title=PLANTED).mark_point().encode(x="x", tooltip="reason")


def test_a_planted_script_stays_text(chart):
    page = style.RENDERER(chart.to_dict())["text/html"]
    (script,) = Scripts(page).found
    begin = script.index("})({") + 3
    spec, _ = json.JSONDecoder().raw_decode(script[begin:])
    (rows,) = spec["datasets"].values()
    assert rows == [{"x": 1, "reason": PLANTED}] and spec["title"] == PLANTED
    assert "<" not in script[begin:] and "\\u003c/script" in page


def test_the_reports_charts_are_drawn_by_this_renderer(chart):
    with alt.renderers.enable(style.THEME):
        assert "\\u003c/script" in chart._repr_mimebundle_()["text/html"]


def test_a_chart_is_otherwise_what_altair_makes_of_it():
    spec = alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x").to_dict()
    with alt.renderers.enable("default"):
        plain = alt.renderers.get()(spec)["text/html"]
    own = style.RENDERER(spec)["text/html"]

    def without_id(text):
        return text.replace(text[text.index("altair-viz-") :][:43], "ID")

    assert without_id(own) == without_id(plain)
