"""What a step yields against what it costs."""

import altair as alt
import pandas as pd

from runners.report.charts.style import WIDTH, colour_of, named, nothing, shape_of


def break_even(costs: pd.DataFrame, workload: str | None = None) -> alt.TopLevelMixin:
    """Tokens per step against step cost r, one point a configuration, workload and C: above the line decoding
    gains.
    """
    frame = costs[costs.step_cost.notna() & costs.tokens_per_step.notna()]
    frame = named(frame[frame.workload == workload] if workload else frame[frame.workload != "all"])
    if frame.empty:
        return nothing("Break-even")
    top = 1.05 * max(frame.step_cost.max(), frame.step_cost_hi.max(), frame.tokens_per_step.max(), 2.0)
    low = min(0.9, 0.95 * float(frame.step_cost.min()))
    keep = ["configuration", "engine", "method", "method_name", "workload", "concurrency", "tokens_per_step"]
    keep += ["step_cost", "step_cost_lo", "step_cost_hi", "speed_up"]
    frame = frame[keep].round(4)
    scale = alt.Scale(domain=[low, top], nice=False, zero=False)
    points = alt.Chart(frame).encode(color=colour_of(frame))
    y = alt.Y("tokens_per_step:Q", scale=scale, title="tokens per step (AL)", axis=alt.Axis(tickCount=8))
    bars = points.mark_rule(strokeWidth=1.5).encode(
        x=alt.X("step_cost_lo:Q", scale=scale, title="step-cost ratio r"), x2="step_cost_hi:Q", y=y
    )
    seen = [f"{name}:N" for name in ("configuration", "workload")]
    seen += [f"{name}:Q" for name in ("concurrency", "tokens_per_step", "step_cost", "speed_up")]
    dots = points.mark_point(filled=True, size=80, opacity=0.9).encode(
        x=alt.X("step_cost:Q", scale=scale, title="step-cost ratio r"), y=y, shape=shape_of(frame), tooltip=seen
    )
    title = alt.Title("What a step yields against what it costs", subtitle="bars: intervals of r")
    layers = [*_diagonal(low, top, scale), bars, dots]
    return alt.layer(*layers).properties(width=WIDTH - 90, height=360, title=title)


def _diagonal(low: float, top: float, scale: alt.Scale) -> list[alt.Chart]:
    """The line AL = r, and on which side of it decoding gains."""
    line = alt.Chart(pd.DataFrame({"x": [low, top], "y": [low, top]})).mark_line(color="#888888", strokeDash=[5, 4])
    line = line.encode(
        x=alt.X("x:Q", scale=scale, title="step-cost ratio r", axis=alt.Axis(tickCount=8)),
        y=alt.Y("y:Q", scale=scale),
    )
    # Beside the middle of the line, where points are rare: they gather at its lower end or far off it.
    span = top - low
    sides = [(0.47, "right", "decoding gains (AL > r)"), (0.53, "left", "decoding loses (AL < r)")]
    words = [
        alt.Chart(pd.DataFrame({"x": [low + at * span], "y": [low + 0.5 * span], "t": [text]}))
        .mark_text(align=align, color="#666666", fontSize=12)
        .encode(x=alt.X("x:Q", scale=scale), y=alt.Y("y:Q", scale=scale), text="t:N")
        for at, align, text in sides
    ]
    return [line, *words]
