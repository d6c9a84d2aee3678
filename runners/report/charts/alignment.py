"""Charts of the chapter Alignment: slots, drift, faults, targets that drifted."""

import altair as alt
import pandas as pd

from runners.report.charts.drafter import BLUE, ORANGE
from runners.report.charts.style import INK, WIDTH, nothing


def target_drift(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Accept length of one drafter on targets that drifted from its own, on the same text and on their own."""
    if table.empty:
        return nothing("Target drift")
    kinds = {
        "same_text_accept_length": "on the same text, every position",
        "accept_length": "on the moved target's own text",
    }
    long = table[["drift", *kinds]].melt("drift", var_name="what", value_name="length").round(4)
    long = long.assign(what=long["what"].map(kinds))
    chart = alt.Chart(long).mark_line(point=True).encode(
        x=alt.X("drift:Q", title="drift of the aux states from the drafter's own target, relative"),
        y=alt.Y("length:Q", scale=alt.Scale(zero=False), title="accept length"),
        color=alt.Color("what:N", title=None, scale=alt.Scale(range=[BLUE, ORANGE])),
    )  # fmt: skip
    return chart.properties(width=WIDTH - 230, height=260, title="A drafter on targets that moved away from its own")


def slot_map(slots: pd.DataFrame) -> alt.TopLevelMixin:
    """Heat map: each captured slot against every boundary of the reference; the dark cell is where it belongs."""
    if slots.empty:
        return nothing("Captured slots")
    frame = slots.assign(slot=[f"{s.source}: input of {s.slot}" for s in slots.itertuples()]).round(5)
    scale = alt.Scale(type="log", scheme="viridis", domain=[0.001, 2], clamp=True)
    colour = alt.Color("distance:Q", title="relative distance", scale=scale)
    chart = alt.Chart(frame).mark_rect().encode(
        x=alt.X("boundary:O", title="reference: input of layer", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("slot:N", title=None),
        color=colour,
        tooltip=["slot:N", "boundary:O", "distance:Q"],
    )  # fmt: skip
    return chart.properties(width=WIDTH - 140, height=30 * frame["slot"].nunique(), title="Which boundary a slot is")


def drift(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Drift from the reference by layer and source, with the distance to the next layer as the yardstick."""
    if table.empty:
        return nothing("Drift by layer")
    long = table.assign(what=[f"{s} against the reference" for s in table["source"]])
    long = long[["boundary", "what", "drift"]].rename(columns={"drift": "distance"})
    yard = table.drop_duplicates("boundary")[["boundary", "to_next"]].dropna().rename(columns={"to_next": "distance"})
    both = pd.concat([long, yard.assign(what="the next layer")]).round(7)
    # fp32 against fp32 at the embeddings is exactly nothing, which a log scale cannot show.
    both = both[both["distance"] > 0]
    chart = alt.Chart(both).mark_line(point=True).encode(
        x=alt.X("boundary:Q", title="input of layer"),
        y=alt.Y("distance:Q", scale=alt.Scale(type="log"), title="relative distance (log)", axis=alt.Axis(format="~g")),
        color=alt.Color("what:N", title=None, scale=alt.Scale(range=[ORANGE, INK, BLUE])),
        tooltip=["what:N", "boundary:Q", "distance:Q"],
    )  # fmt: skip
    return chart.properties(width=WIDTH - 60, height=260, title="How far the states are from the reference")


def faults(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Accept length with each fault, served (bar) and replayed (tick), one panel a configuration."""
    if table.empty:
        return nothing("Faults")
    frame = table[["configuration", "what", "accept_length_served", "accept_length_replayed"]].round(4)
    order = list(dict.fromkeys(frame["what"]))
    panels = []
    for name, part in frame.groupby("configuration", sort=False):
        base = alt.Chart(part).encode(y=alt.Y("what:N", sort=order, title=None, axis=alt.Axis(labelLimit=320)))
        scale = alt.Scale(domainMin=1, zero=False)
        bars = base.mark_bar(color=BLUE).encode(
            x=alt.X("accept_length_served:Q", scale=scale, title="accept length"), x2=alt.datum(1)
        )
        ticks = base.mark_tick(color=ORANGE, thickness=3).encode(x=alt.X("accept_length_replayed:Q", scale=scale))
        panels.append(alt.layer(bars, ticks).properties(title=str(name), width=WIDTH - 300, height=24 * len(part)))
    return alt.vconcat(*panels, title=alt.Title("Each fault", subtitle="bar: served; tick: replayed"))
