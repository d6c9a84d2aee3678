"""Speeds against concurrency."""

import altair as alt
import pandas as pd

from runners.analyse.metrics import METRICS
from runners.report.charts.style import colour_of, named, nothing, panel_width, shape_of

WHO = ["configuration", "engine", "method", "method_name", "workload", "concurrency"]


def throughput(summary: pd.DataFrame, cells: pd.DataFrame) -> alt.TopLevelMixin:
    """Output throughput of all streams together against C."""
    return against_concurrency(summary, cells, "throughput", "Output throughput", "output tokens/s, all streams")


def stream(summary: pd.DataFrame, cells: pd.DataFrame) -> alt.TopLevelMixin:
    """Decode speed of one stream (median over requests) against C."""
    return against_concurrency(summary, cells, "stream", "Speed of one stream", "decode tokens/s per stream")


def against_concurrency(
    summary: pd.DataFrame, cells: pd.DataFrame, metric: str, title: str, axis: str
) -> alt.TopLevelMixin:
    """One panel a workload: `metric` of `summarise.summarise` against C, with intervals; void cells are hollow.

    `axis` is the y title with its unit. Void cells show the raw value that no average holds, with the reason
    on hover.
    """
    frame = named(summary[(summary.workload != "all") & summary[metric].notna()])
    if frame.empty:
        return nothing(title)
    frame = frame[[*WHO, "n_repeats", "unit", metric, f"{metric}_lo", f"{metric}_hi"]].round(3)
    void = _void(cells, metric)
    both = pd.concat([frame, void])  # one colour a method and one shape an engine over measured and void points
    channels = {"x": _concurrency(frame), "color": colour_of(both), "shape": shape_of(both)}
    panels = []
    workloads = sorted(set(frame.workload))
    for i, workload in enumerate(workloads):
        # The first panel's axis serves all of them: they share their scale.
        y, low = (_from_zero(name, None if i else axis) for name in (metric, f"{metric}_lo"))
        layers = _measured_layers(frame[frame.workload == workload], metric, y, low, channels)
        lost = void[void.workload == workload]
        if len(lost):
            layers.append(_void_layer(lost, metric, y, channels))
        panels.append(alt.layer(*layers).properties(title=workload, width=panel_width(len(workloads)), height=260))
    note = "bars: intervals; hollow, dashed: void cells, in no average" if len(void) else "bars: intervals"
    return alt.hconcat(*panels, title=alt.Title(title, subtitle=note)).resolve_scale(y="shared")


def _concurrency(frame: pd.DataFrame) -> alt.X:
    steps = sorted(int(c) for c in set(frame.concurrency))
    scale = alt.Scale(type="log", base=2, nice=False, padding=18)
    axis = alt.Axis(values=steps, format="d", grid=False)
    return alt.X("concurrency:Q", title="concurrency C (log scale)", scale=scale, axis=axis)


def _from_zero(name: str, title: str | None) -> alt.Y:
    return alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=True))


def _void(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The void cells with their raw value and reason."""
    void = cells[cells.status != "ok"].rename(columns={METRICS[metric].column: metric})
    return named(void[void[metric].notna()])[[*WHO, "repeat", "reason", metric]]


def _measured_layers(frame: pd.DataFrame, metric: str, y: alt.Y, low: alt.Y, channels: dict) -> list[alt.Chart]:
    """A line a configuration, the interval of each point, and the point."""
    base = alt.Chart(frame).encode(x=channels["x"], color=channels["color"])
    seen = ["configuration:N", "concurrency:Q", *(f"{metric}{end}:Q" for end in ("", "_lo", "_hi"))]
    points = base.mark_point(filled=True, size=70, opacity=1)
    return [
        base.mark_line(strokeWidth=1.5).encode(y=y, detail="configuration:N"),
        base.mark_rule(strokeWidth=1.5).encode(y=low, y2=f"{metric}_hi:Q"),
        points.encode(y=y, shape=channels["shape"], tooltip=[*seen, "n_repeats:Q", "unit:N"]),
    ]


def _void_layer(lost: pd.DataFrame, metric: str, y: alt.Y, channels: dict) -> alt.Chart:
    why = ["configuration:N", "concurrency:Q", "repeat:Q", "reason:N", alt.Tooltip(f"{metric}:Q", format=".1f")]
    hollow = alt.Chart(lost.round(3)).mark_point(filled=False, size=80, strokeWidth=1.5, strokeDash=[2, 2])
    return hollow.encode(y=y, tooltip=why, **channels)
