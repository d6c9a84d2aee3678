"""The chart of the chapter on reproduction: each ratio here against the same ratio there."""

import altair as alt
import pandas as pd

from runners.analyse.compare_runs import DIFFER
from runners.report.charts.style import INK, WIDTH, colour_of, named, nothing, shape_of

SIZE = (WIDTH - 160) // 3


NUMBERS = [f"{side}{end}" for side in ("here", "there") for end in ("", "_lo", "_hi")]


def agreement(frame: pd.DataFrame) -> alt.TopLevelMixin:
    """A panel a ratio, a row a machine; on the diagonal both are equal, hollow points differ.

    frame: claims.reproduction.drawn.
    """
    if frame.empty:
        return nothing("Ratios beside another machine's")
    frame = named(frame)
    colour, shape = colour_of(frame), shape_of(frame)
    keep = ["runs", "what", "configuration", "engine", "method_name", "workload", "concurrency", "outcome", *NUMBERS]
    rows = []
    for runs, other in frame[keep].round(3).groupby("runs", sort=False):
        panels = [_panel(part, str(what), str(runs), colour, shape) for what, part in other.groupby("what", sort=False)]
        rows.append(alt.hconcat(*panels))
    note = "across: this report; up: the other runs; on the line both are equal; bars: intervals; hollow: they differ"
    return alt.vconcat(*rows, title=alt.Title("The same ratios, measured again", subtitle=note))


def _panel(part: pd.DataFrame, what: str, runs: str, colour: alt.Color, shape: alt.Shape) -> alt.LayerChart:
    """One ratio here (across) against the same ratio in `runs` (up)."""
    ends = [round(float(part[NUMBERS].min().min()) * 0.95, 3), round(float(part[NUMBERS].max().max()) * 1.05, 3)]
    scale, axis = alt.Scale(type="log", domain=ends, nice=False), alt.Axis(tickCount=5)
    x, y = alt.X("here:Q", scale=scale, axis=axis, title=what), alt.Y("there:Q", scale=scale, axis=axis, title=runs)
    diagonal = alt.Chart(pd.DataFrame({"here": ends, "there": ends})).mark_line(strokeDash=[5, 4], color=INK)
    base = alt.Chart(part).encode(x=x, y=y, color=colour)
    layers = [
        diagonal.encode(x=x, y=y),
        base.mark_rule(opacity=0.35).encode(x=alt.X("here_lo:Q", scale=scale, title=what), x2="here_hi:Q"),
        base.mark_rule(opacity=0.35).encode(y=alt.Y("there_lo:Q", scale=scale, title=runs), y2="there_hi:Q"),
    ]
    seen = ["configuration:N", "workload:N", "concurrency:Q", *(f"{n}:Q" for n in NUMBERS), "outcome:N"]
    for filled in (True, False):
        own = part[(part.outcome != DIFFER) == filled]
        if len(own):
            points = alt.Chart(own).mark_point(size=60, filled=filled, opacity=0.9)
            layers.append(points.encode(x=x, y=y, color=colour, shape=shape, tooltip=seen))
    return alt.layer(*layers).properties(width=SIZE, height=SIZE)
