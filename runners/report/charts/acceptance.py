"""Acceptance by position."""

import altair as alt
import pandas as pd

from runners.analyse import acceptance
from runners.report.charts.style import INK, SPARE, nothing, panel_width


def survival(pool: pd.DataFrame) -> alt.TopLevelMixin:
    """Bars of per-position survival, one panel a configuration, workloads side by side; zero is drawn as a
    tick.
    """
    long = acceptance.positions(pool).dropna(subset=["survival"])
    if long.empty:
        return nothing("Acceptance per position")
    workloads = sorted(set(long.workload))
    colours = (["#0072b2", "#e69f00", *SPARE] * len(workloads))[: len(workloads)]
    domain, top = alt.Scale(domain=workloads), max(0.05, float(long.survival.max()) * 1.1)
    long = long[["configuration", "workload", "position", "survival", "conditional"]].round(4)
    panels = []
    # Panels side by side and not a facet: in a facet the bars lose their width as soon as K differs.
    for name, frame in long.groupby("configuration", sort=False):
        base = alt.Chart(frame).encode(
            x=alt.X("position:O", title="draft position", axis=alt.Axis(labelAngle=0)),
            y=alt.Y(
                "survival:Q",
                title="share of steps",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, top]),
            ),
            xOffset=alt.XOffset("workload:N", scale=domain),
            color=alt.Color("workload:N", title="workload", scale=alt.Scale(domain=workloads, range=colours)),
            tooltip=[
                "workload:N",
                "position:O",
                *(alt.Tooltip(f"{c}:Q", format=".1%") for c in ("survival", "conditional")),
            ],
        )
        # A bar of no height cannot be seen; the number says "measured, and nothing was kept".
        number = base.mark_text(dy=-6, fontSize=10).encode(
            text=alt.Text("survival:Q", format=".0%"), color=alt.value(INK)
        )
        panels.append(
            alt.layer(base.mark_bar(), number).properties(title=str(name), width=panel_width(2) - 25, height=170)
        )
    chart = alt.concat(*panels, columns=2)
    return chart.properties(title=alt.Title("Acceptance per position", subtitle="of the steps that had a draft"))
