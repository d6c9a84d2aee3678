"""The look of every chart: one theme, a colour a method, a shape an engine.

Altair with the code of its default renderer: the page brings the Vega scripts, the chart only its specification, and no
text from outside can end the script that this stands in. Colours are from
Okabe and Ito's palette, which stays apart for colour-blind readers; shapes say the engine, so that colour is never the
only sign.
"""

import json
from typing import Any

import altair as alt
import pandas as pd
from altair.utils.display import HTMLRenderer

from runners.analyse import results
from runners.core import format

THEME = "specverdict"
WIDTH = 640  # pixels: the column of a page
METHODS = {"none": "no speculation", "ngram": "n-gram", "eagle3": "EAGLE-3", "draft_model": "draft model"}
COLOURS = {"none": "#4d4d4d", "ngram": "#0072b2", "eagle3": "#d55e00", "draft_model": "#009e73"}
SPARE = ["#009e73", "#cc79a7", "#e69f00"]  # for methods newer than this list
SHAPES = ["circle", "square", "triangle-up", "diamond"]
INK, GRID = "#333333", "#e5e5e5"


class _ScriptJson(json.JSONEncoder):
    """JSON to stand in a page's script: `<`, which could end the script there, only as \\u003c."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")


RENDERER = HTMLRenderer(
    mode="vega-lite",
    template="universal",
    vega_version=alt.VEGA_VERSION,
    vegaembed_version=alt.VEGAEMBED_VERSION,
    vegalite_version=alt.VEGALITE_VERSION,
    json_kwds={"cls": _ScriptJson},
)
alt.renderers.register(THEME, RENDERER)


@alt.theme.register(THEME, enable=True)
def theme() -> alt.theme.ThemeConfig:
    """A white panel in light and dark pages alike, with text large enough to read at column width."""
    axis = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": GRID}
    axis |= {"labelColor": INK, "titleColor": INK, "domainColor": "#999999", "tickColor": "#999999"}
    legend = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "orient": "bottom"}
    return {
        "config": {
            "background": "white",
            "font": "system-ui, sans-serif",
            "padding": 8,
            "view": {"stroke": "#cccccc"},
            "axis": axis,
            "legend": legend | {"labelColor": INK, "titleColor": INK, "labelLimit": 320, "symbolSize": 90},
            "header": {
                "labelFontSize": 13,
                "titleFontSize": 12,
                "labelColor": INK,
                "labelFontWeight": "bold",
            },
            "title": {"fontSize": 14, "anchor": "start", "color": INK, "subtitleColor": "#666666"},
        }
    }


def named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(method_name=[METHODS.get(m, m) for m in frame.method])


def colour_of(frame: pd.DataFrame) -> alt.Color:
    methods = sorted(set(frame.method), key=lambda m: (results.method_rank(m), m))
    spare = iter(SPARE * len(methods))
    colours = [COLOURS.get(m) or next(spare) for m in methods]
    names = [METHODS.get(m, m) for m in methods]
    return alt.Color("method_name:N", title="method", scale=alt.Scale(domain=names, range=colours))


def shape_of(frame: pd.DataFrame) -> alt.Shape:
    engines = sorted(set(frame.engine))
    marks = (SHAPES * len(engines))[: len(engines)]
    return alt.Shape("engine:N", title="engine", scale=alt.Scale(domain=engines, range=marks))


def nothing(what: str) -> alt.Chart:
    """What stands in a chart's place when there is nothing to draw: a sentence, not an empty frame."""
    text = pd.DataFrame({"text": [f"{what}: {format.NOT_MEASURED}"]})
    return (
        alt.Chart(text).mark_text(fontSize=14, color=INK).encode(text="text:N").properties(width=WIDTH - 100, height=60)
    )


def panel_width(count: int) -> int:
    return max(160, (WIDTH - 70) // count - 10)
