"""Speeds against concurrency."""

import altair as alt
import pandas as pd

from runners.analyse import summarise
from runners.report.charts.style import colour_of, named, nothing, panel_width, shape_of


def _concurrency(frame: pd.DataFrame) -> alt.X:
    steps = sorted(int(c) for c in set(frame.concurrency))
    scale = alt.Scale(type="log", base=2, nice=False, padding=18)
    axis = alt.Axis(values=steps, format="d", grid=False)
    return alt.X("concurrency:Q", title="concurrency C (log scale)", scale=scale, axis=axis)


def against_concurrency(
    summary: pd.DataFrame, cells: pd.DataFrame, metric: str, title: str, axis: str
) -> alt.TopLevelMixin:
    """One panel a workload: `metric` of `statistics.summarise` against C, with intervals and void cells
    hollow.

    `axis` is the y title with its unit. Void cells show the raw value that no average holds, with the reason
    on hover.
    """
    frame = named(summary[(summary.workload != "all") & summary[metric].notna()])
    if frame.empty:
        return nothing(title)
    column = summarise.METRICS[metric][0]
    void = cells[cells.status != "ok"].rename(columns={column: metric})
    void = named(void[void[metric].notna()])[
        [
            "configuration",
            "engine",
            "method",
            "method_name",
            "workload",
            "concurrency",
            "repeat",
            "reason",
            metric,
        ]
    ]
    keep = [
        "configuration",
        "engine",
        "method",
        "method_name",
        "workload",
        "concurrency",
        "n_repeats",
        "unit",
    ]
    frame = frame[[*keep, metric, f"{metric}_lo", f"{metric}_hi"]].round(3)
    x, colour, shape = (
        _concurrency(frame),
        colour_of(pd.concat([frame, void])),
        shape_of(pd.concat([frame, void])),
    )
    seen = ["configuration:N", "concurrency:Q", *(f"{metric}{end}:Q" for end in ("", "_lo", "_hi"))]
    why = [
        "configuration:N",
        "concurrency:Q",
        "repeat:Q",
        "reason:N",
        alt.Tooltip(f"{metric}:Q", format=".1f"),
    ]
    panels = []
    workloads = sorted(set(frame.workload))
    for i, workload in enumerate(workloads):
        own = alt.Chart(frame[frame.workload == workload]).encode(x=x, color=colour)
        scale, label = alt.Scale(zero=True), None if i else axis
        y, low = (alt.Y(f"{name}:Q", title=label, scale=scale) for name in (metric, f"{metric}_lo"))
        layers = [
            own.mark_line(strokeWidth=1.5).encode(y=y, detail="configuration:N"),
            own.mark_rule(strokeWidth=1.5).encode(y=low, y2=f"{metric}_hi:Q"),
            own.mark_point(filled=True, size=70, opacity=1).encode(
                y=y, shape=shape, tooltip=[*seen, "n_repeats:Q", "unit:N"]
            ),
        ]
        lost = void[void.workload == workload]
        if len(lost):
            hollow = alt.Chart(lost.round(3)).mark_point(filled=False, size=80, strokeWidth=1.5, strokeDash=[2, 2])
            layers.append(hollow.encode(x=x, y=y, color=colour, shape=shape, tooltip=why))
        panels.append(alt.layer(*layers).properties(title=workload, width=panel_width(len(workloads)), height=260))
    note = "bars: intervals; hollow, dashed: void cells, in no average" if len(void) else "bars: intervals"
    return alt.hconcat(*panels, title=alt.Title(title, subtitle=note)).resolve_scale(y="shared")


def throughput(summary: pd.DataFrame, cells: pd.DataFrame) -> alt.TopLevelMixin:
    """Output throughput of all streams together against C."""
    return against_concurrency(summary, cells, "throughput", "Output throughput", "output tokens/s, all streams")


def stream(summary: pd.DataFrame, cells: pd.DataFrame) -> alt.TopLevelMixin:
    """Decode speed of one stream (median over requests) against C."""
    return against_concurrency(summary, cells, "stream", "Speed of one stream", "decode tokens/s per stream")
