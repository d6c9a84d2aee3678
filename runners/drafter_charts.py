"""Charts of the drafter and alignment chapters: training, replay against served, states, causes."""

import altair as alt
import pandas as pd

from runners.charts import INK, WIDTH, nothing

BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito
STEPS = [BLUE, "#e69f00", GREEN, "#cc79a7"]


def training(history: list[dict]) -> alt.TopLevelMixin:
    """Held-out top-1 of each draft step, and the accept length they make, against minutes of training."""
    rows = [
        {"minutes": round(h["seconds"] / 60, 3), "draft step": f"step {i + 1}", "top1": round(t, 4)}
        for h in history
        for i, t in enumerate(h["top1"])
    ]
    if not rows:
        return nothing("Training")
    x = alt.X("minutes:Q", title="minutes of training")
    steps = alt.Color("draft step:N", scale=alt.Scale(range=STEPS))
    left = alt.Chart(pd.DataFrame(rows)).mark_line(point=True).encode(
        x=x, y=alt.Y("top1:Q", title="held-out top-1", axis=alt.Axis(format="%")), color=steps
    )  # fmt: skip
    lengths = pd.DataFrame(
        {"minutes": [round(h["seconds"] / 60, 3) for h in history],
         "accept length": [round(h["accept_length"], 4) for h in history]}
    )  # fmt: skip
    y = alt.Y("accept length:Q", scale=alt.Scale(zero=False), title="accept length, every position")
    right = alt.Chart(lengths).mark_line(point=True, color=INK).encode(x=x, y=y)
    half = (WIDTH - 200) // 2  # two axes and a legend take the rest
    size = {"width": half, "height": 220}
    return alt.hconcat(left.properties(**size), right.properties(**size), title="Training, on held-out subjects")


def scaling(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Held-out accept length against answer tokens trained on; the training time stands at each point."""
    if table.empty:
        return nothing("More text")
    frame = table.assign(minutes=[f"{s / 60:.0f} min" for s in table["seconds"]])
    frame = frame[["train_tokens", "accept_length", "minutes"]]
    base = alt.Chart(frame).encode(
        x=alt.X("train_tokens:Q", scale=alt.Scale(type="log", nice=False, padding=20), title="answer tokens (log)",
                axis=alt.Axis(format="~s")),
        y=alt.Y("accept_length:Q", scale=alt.Scale(zero=False, padding=12), title="accept length, every position"),
    )  # fmt: skip
    line = base.mark_line(point=True, color=BLUE)
    words = base.mark_text(dy=-12, color=INK).encode(text="minutes:N")
    return alt.layer(line, words).properties(width=WIDTH - 120, height=240, title="Is more text worth it?")


def siblings(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Accept length of one drafter on targets that drifted from its own, on the same text and on their own."""
    if table.empty:
        return nothing("Siblings of the target")
    kinds = {
        "same_text_accept_length": "on the same text, every position",
        "accept_length": "on the sibling's own text",
    }
    long = table[["drift", *kinds]].melt("drift", var_name="what", value_name="length").round(4)
    long = long.assign(what=long["what"].map(kinds))
    chart = alt.Chart(long).mark_line(point=True).encode(
        x=alt.X("drift:Q", title="drift of the aux states from the drafter's own target, relative"),
        y=alt.Y("length:Q", scale=alt.Scale(zero=False), title="accept length"),
        color=alt.Color("what:N", title=None, scale=alt.Scale(range=[BLUE, ORANGE])),
    )  # fmt: skip
    return chart.properties(width=WIDTH - 230, height=260, title="A drafter on siblings of its target")


def replay(rows: pd.DataFrame) -> alt.TopLevelMixin:
    """Served against replayed accept length, one point a configuration, workload and concurrency."""
    if rows.empty:
        return nothing("Replay against served")
    low, high = 0.98 * rows[["served", "replayed"]].min().min(), 1.02 * rows[["served", "replayed"]].max().max()
    scale = alt.Scale(domain=[round(low, 2), round(high, 2)], zero=False, nice=False)
    line = alt.Chart(pd.DataFrame({"x": [low, high], "y": [low, high]})).mark_line(color="#888888", strokeDash=[5, 4])
    line = line.encode(x=alt.X("x:Q", scale=scale), y=alt.Y("y:Q", scale=scale))
    seen = ["configuration:N", "workload:N", "concurrency:Q", "served:Q", "replayed:Q", "difference:Q"]
    dots = alt.Chart(rows.round(4)).mark_point(filled=True, size=80, opacity=0.9)
    dots = dots.encode(
        x=alt.X("replayed:Q", scale=scale, title="accept length, replayed"),
        y=alt.Y("served:Q", scale=scale, title="accept length, served"),
        color=alt.Color("configuration:N", scale=alt.Scale(range=STEPS)),
        shape="workload:N",
        tooltip=seen,
    )
    return alt.layer(line, dots).properties(width=360, height=320, title="Replay against served")


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


def causes(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Accept length of each cause, served (bar) and replayed (tick), one panel a configuration."""
    if table.empty:
        return nothing("Causes")
    frame = table[["configuration", "cause", "accept_length_served", "accept_length_replayed"]].round(4)
    order = list(dict.fromkeys(frame["cause"]))
    panels = []
    for name, part in frame.groupby("configuration", sort=False):
        base = alt.Chart(part).encode(y=alt.Y("cause:N", sort=order, title=None, axis=alt.Axis(labelLimit=320)))
        scale = alt.Scale(domainMin=1, zero=False)
        bars = base.mark_bar(color=BLUE).encode(
            x=alt.X("accept_length_served:Q", scale=scale, title="accept length"), x2=alt.datum(1)
        )
        ticks = base.mark_tick(color=ORANGE, thickness=3).encode(x=alt.X("accept_length_replayed:Q", scale=scale))
        panels.append(alt.layer(bars, ticks).properties(title=str(name), width=WIDTH - 300, height=24 * len(part)))
    return alt.vconcat(*panels, title=alt.Title("Each cause", subtitle="bar: served; tick: replayed"))
