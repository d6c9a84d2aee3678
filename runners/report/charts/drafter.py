"""Charts of the chapter Drafter: training, scaling with text, replay against served."""

import altair as alt
import pandas as pd

from runners.report.charts.style import INK, WIDTH, nothing

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
