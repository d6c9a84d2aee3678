"""Goodput: how many requests keep the latency limits at each load, and what is left of it under other limits.

A line a configuration. Its name stands beside its end and its dashes are its own, so that the colour is not needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from runners.report.charts.style import INK, WIDTH, colour_of, named, nothing

PANEL = WIDTH - 250  # pixels: the rest is for the names right of it
SAMPLE_PX = 30  # length of the piece of a line that stands before its name
LINE_PX = 13  # height of a name
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 6], [1, 4], [10, 4], [6, 2, 1, 2, 1, 2]]
WHO = ["configuration", "engine", "method", "method_name", "workload"]


@dataclass(frozen=True)
class Height:
    """What a panel's lines show: their field, the axis' title, and where the axis ends (it begins at 0)."""

    field: str
    title: str
    top: float
    format: str = ".0f"

    def y(self, field: str | None = None) -> alt.Y:
        scale = alt.Scale(domain=[0, self.top], nice=False)
        return alt.Y(f"{field or self.field}:Q", title=self.title, scale=scale, axis=alt.Axis(format=self.format))


SHARE = Height("attainment", "share of requests", 1.0, ".0%")


def attainment(points: pd.DataFrame, floor: float, load: str = "closed") -> alt.TopLevelMixin:
    """The share of requests within the limits against the load, a panel an engine and workload; `floor` is dashed.

    points: goodput.points. load: "closed" (against C) or "open" (against requests per second).
    """
    title = f"Requests within the limits against {'the rate of arrivals' if load == 'open' else 'concurrency'}"
    rows = points[points.load == load]
    if rows.empty:
        return nothing(title)
    if load == "open":
        x = alt.X("at:Q", title="requests per second", scale=alt.Scale(zero=True))
        rows = rows.assign(at=rows.rate.astype(float))
    else:
        steps = sorted({int(c) for c in rows.concurrency})
        axis = alt.Axis(values=steps, format="d", grid=False)
        x = alt.X("at:Q", title="concurrency C (log scale)", scale=alt.Scale(type="log", base=2, nice=False), axis=axis)
        rows = rows.assign(at=rows.concurrency)
    return _panels(rows, x, SHARE, title, f"dashed: {floor:.0%} must keep them", floor)


def attainment_by_limit(curves: pd.DataFrame, floor: float) -> alt.TopLevelMixin:
    """The share of requests within the limits against how wide the limits are, at the heaviest load that some
    configuration of the engine carries within limits of twice the width; a panel an engine and workload.

    curves: goodput.attainment_by_limit.
    """
    title = "Requests within the limits against the limits"
    closed = curves[curves.load == "closed"] if len(curves) else curves
    if closed.empty:
        return nothing(title)
    carried = closed[(closed.scale <= 2) & (closed.attainment >= floor)]
    top = carried.groupby(["engine", "workload"]).concurrency.max()
    lightest = closed.groupby(["engine", "workload"]).concurrency.min()
    at = [top.get(key, lightest[key]) for key in zip(closed.engine, closed.workload, strict=True)]
    rows = closed[closed.concurrency == at].assign(at=lambda f: f.scale)
    rows = rows.assign(workload=[f"{w}, C = {c}" for w, c in zip(rows.workload, rows.concurrency, strict=True)])
    return _panels(rows, _scale_axis(), SHARE, title, f"dashed: {floor:.0%}; at ×1 are the profile's limits", floor)


def by_limit(curves: pd.DataFrame, load: str = "closed") -> alt.TopLevelMixin:
    """Goodput in tokens per second against how wide the limits are, a panel an engine and workload.

    curves: goodput.by_limit.
    """
    title = "Goodput against the limits"
    rows = curves[curves.load == load] if len(curves) else curves
    if rows.empty:
        return nothing(title)
    top = 1.05 * float(rows.tokens_per_second.max()) or 1.0
    rows = rows.assign(at=rows.scale)
    speed = Height("tokens_per_second", "output tokens/s", top)
    note = "at ×1 are the profile's limits; 0: too few requests keep them at every measured load"
    return _panels(rows, _scale_axis(), speed, title, note, None, "step-after")


def _scale_axis() -> alt.X:
    axis = alt.Axis(values=[0.5, 0.75, 1, 1.5, 2, 3], labelExpr="'×' + datum.label", grid=False)
    return alt.X("at:Q", title="limits", scale=alt.Scale(type="log", nice=False), axis=axis)


def _panels(
    rows: pd.DataFrame, x: alt.X, up: Height, title: str, note: str, floor: float | None, how: str = "linear"
) -> alt.TopLevelMixin:
    """One panel under another, each with the names of its lines at their ends. rows: WHO, `at`, field of `up`."""
    rows = named(rows)[[*WHO, "at", up.field]].round(4)
    colour = colour_of(rows)
    panels = []
    for (engine, workload), part in rows.groupby(["engine", "workload"], sort=False):
        names = list(dict.fromkeys(part.configuration))
        height = max(120, (LINE_PX + 1) * len(names))
        dash = alt.StrokeDash(
            "configuration:N", legend=None, scale=alt.Scale(domain=names, range=(DASHES * len(names))[: len(names)])
        )
        lines = alt.Chart(part).encode(x=x, y=up.y(), color=colour, detail="configuration:N")
        layers = [
            lines.mark_line(strokeWidth=1.6, interpolate=how).encode(strokeDash=dash),
            lines.mark_point(filled=True, size=28, opacity=1).encode(
                tooltip=["configuration:N", "workload:N", "at:Q", f"{up.field}:Q"]
            ),
            *_names(part, up, height, dash, colour),
        ]
        if floor is not None:
            rule = alt.Chart(pd.DataFrame({"y": [floor]})).mark_rule(strokeDash=[4, 4], color=INK)
            layers.insert(0, rule.encode(y=up.y("y")))
        size = {"width": PANEL, "height": height}
        panels.append(alt.layer(*layers).properties(title=f"{engine} · {workload}", **size))
    return alt.vconcat(*panels, title=alt.Title(title, subtitle=note)).resolve_scale(
        color="shared", strokeDash="independent"
    )


def _names(part: pd.DataFrame, up: Height, height: int, dash: alt.StrokeDash, colour: alt.Color) -> list[alt.Chart]:
    """Right of a panel: each line's name with a piece of the line, as near to its end as the other names leave room."""
    by_name = part.sort_values("at").groupby("configuration")
    ends = by_name.tail(1).assign(mean=lambda f: f.configuration.map(by_name[up.field].mean()))
    ends = ends.sort_values([up.field, "mean"], ascending=False, kind="stable")
    ends = ends.assign(place=spread(ends[up.field].to_list(), LINE_PX * up.top / height, up.top))
    names = alt.Chart(ends[["configuration", "method_name", "place"]].round(4)).encode(y=up.y("place"))
    piece = names.mark_rule(strokeWidth=1.6).encode(
        x=alt.value(PANEL + 8), x2=alt.value(PANEL + 8 + SAMPLE_PX), strokeDash=dash, color=colour
    )
    text = names.mark_text(align="left", fontSize=11, color=INK)
    return [piece, text.encode(x=alt.value(PANEL + 12 + SAMPLE_PX), text="configuration:N")]


def spread(values: Sequence[float], gap: float, top: float) -> list[float]:
    """Falling values, moved apart so that neighbours are at least `gap` from each other and lie between 0 and top."""
    placed: list[float] = []
    for value in values:
        placed.append(min(value, placed[-1] - gap) if placed else value)
    # What fell below 0 is pushed up again, from the lowest.
    low = 0.0
    for i in reversed(range(len(placed))):
        placed[i] = max(placed[i], low)
        low = placed[i] + gap
    return list(np.minimum(placed, top)) if gap * (len(placed) - 1) <= top else placed
