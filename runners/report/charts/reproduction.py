"""The chart of the chapter on reproduction: each ratio here against the same ratio there."""

import altair as alt
import pandas as pd

from runners.analyse.compare_runs import DIFFER
from runners.report.charts.style import INK, WIDTH, colour_of, named, nothing, shape_of

SIZE = (WIDTH - 160) // 3


def agreement(frame: pd.DataFrame) -> alt.TopLevelMixin:
    """reproduction.drawn: a panel a ratio, a row an other machine; on the line both are equal, hollow ones differ."""
    if frame.empty:
        return nothing("Ratios beside another machine's")
    frame = named(frame)
    colour, shape = colour_of(frame), shape_of(frame)
    numbers = [f"{side}{end}" for side in ("here", "there") for end in ("", "_lo", "_hi")]
    keep = ["runs", "what", "configuration", "engine", "method_name", "workload", "concurrency", "outcome", *numbers]
    frame = frame[keep].round(3)
    rows = []
    for runs, other in frame.groupby("runs", sort=False):
        panels = []
        for what, part in other.groupby("what", sort=False):
            ends = [
                round(float(part[numbers].min().min()) * 0.95, 3),
                round(float(part[numbers].max().max()) * 1.05, 3),
            ]
            scale, axis = alt.Scale(type="log", domain=ends, nice=False), alt.Axis(tickCount=5)
            x = alt.X("here:Q", scale=scale, axis=axis, title=what)
            y = alt.Y("there:Q", scale=scale, axis=axis, title=str(runs))
            seen = ["configuration:N", "workload:N", "concurrency:Q", *(f"{n}:Q" for n in numbers), "outcome:N"]
            diagonal = alt.Chart(pd.DataFrame({"here": ends, "there": ends})).mark_line(strokeDash=[5, 4], color=INK)
            base = alt.Chart(part).encode(x=x, y=y, color=colour)
            layers = [
                diagonal.encode(x=x, y=y),
                base.mark_rule(opacity=0.35).encode(x=alt.X("here_lo:Q", scale=scale, title=what), x2="here_hi:Q"),
                base.mark_rule(opacity=0.35).encode(
                    y=alt.Y("there_lo:Q", scale=scale, title=str(runs)), y2="there_hi:Q"
                ),
            ]
            for filled in (True, False):
                own = part[(part.outcome != DIFFER) == filled]
                if len(own):
                    points = alt.Chart(own).mark_point(size=60, filled=filled, opacity=0.9)
                    layers.append(points.encode(x=x, y=y, color=colour, shape=shape, tooltip=seen))
            panels.append(alt.layer(*layers).properties(width=SIZE, height=SIZE))
        rows.append(alt.hconcat(*panels))
    note = "across: this report; up: the other runs; on the line both are equal; bars: intervals; hollow: they differ"
    return alt.vconcat(*rows, title=alt.Title("The same ratios, measured again", subtitle=note))
