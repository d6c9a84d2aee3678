"""Charts of the chapter on where speculation pays: the map, the case's map, synthetic acceptance, the sweeps."""

import altair as alt
import pandas as pd

from runners.report.charts.style import INK, SHAPES, WIDTH, nothing

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
LOG_C = alt.Scale(type="log", base=2, nice=False)


def payoff_map(curves: pd.DataFrame, points: pd.DataFrame, k: int = 3) -> alt.TopLevelMixin:
    """Accept length against running requests: above the band speculation pays. One panel an engine.

    points: configuration, engine, batch, tokens_per_step, workload (measured).
    """
    band = curves[curves.k == k].round(4)
    if band.empty:
        return nothing("Where speculation pays")
    panels = []
    top = max(2.6, 1.05 * float(points.tokens_per_step.max()) if len(points) else 0, float(band.break_even.max()))
    for engine, part in band.groupby("engine"):
        y = alt.Scale(domain=[1, round(min(top, 8), 2)], clamp=True, nice=False)
        base = alt.Chart(part).encode(x=alt.X("batch:Q", scale=LOG_C, title="running requests"))
        lines = alt.StrokeDash("drafter:N", title="break-even of")
        area = base.mark_area(opacity=0.15, color=INK).encode(
            y=alt.Y("break_even_lo:Q", scale=y, title="tokens per step"), y2="break_even_hi:Q", detail="drafter:N"
        )
        line = base.mark_line(color=INK).encode(y=alt.Y("break_even:Q", scale=y), strokeDash=lines)
        mine = points[points.engine == engine][["configuration", "workload", "batch", "tokens_per_step"]].round(3)
        dots = alt.Chart(mine).mark_point(size=80, filled=True).encode(
            x=alt.X("batch:Q", scale=LOG_C),
            y=alt.Y("tokens_per_step:Q", scale=y),
            color=alt.Color("configuration:N", scale=alt.Scale(range=COLOURS), legend=alt.Legend(columns=1)),
            shape=alt.Shape("workload:N", scale=alt.Scale(range=SHAPES)),
            tooltip=["configuration:N", "workload:N", "batch:Q", "tokens_per_step:Q"],
        )  # fmt: skip
        panels.append(alt.layer(area, line, dots).properties(title=engine, width=(WIDTH - 150) // 2, height=280))
    title = alt.Title("Where speculation pays", subtitle=f"above the line; band: 95% of refits; K = {k}")
    return alt.hconcat(*panels, title=title).resolve_scale(color="shared", shape="shared", strokeDash="shared")


def case_map(points: pd.DataFrame) -> alt.TopLevelMixin:
    """The case's box on a single stream: reported and published accept lengths against the break-even that follows."""
    measured = points[points.step_cost.notna()]
    rules = alt.Chart(measured[["step_cost"]].round(3)).mark_rule(strokeDash=[5, 4], color=INK).encode(x="step_cost:Q")
    dots = alt.Chart(points[["what", "kind", "accept_length"]].round(3)).mark_point(size=90, filled=True).encode(
        x=alt.X("accept_length:Q", scale=alt.Scale(zero=False, domain=[0.9, 3.5]), title="accept length"),
        y=alt.Y("what:N", sort="-x", title=None, axis=alt.Axis(labelLimit=330)),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(range=[COLOURS[1], COLOURS[0]])),
    )  # fmt: skip
    title = alt.Title(
        "The case's box, single stream",
        subtitle="nothing measured here; dashed: break-even that a reported row implies; right of it speculation pays",
    )
    return alt.layer(rules, dots).properties(width=WIDTH - 360, height=22 * len(points), title=title)


def synthetic_acceptance(table: pd.DataFrame, workload: str = "chat") -> alt.TopLevelMixin:
    """Decode speed-up against the synthetic accept length: straight lines whose slope is 1/r, crossing 1 at r.

    table: sweeps.Sweeps.forced.
    """
    rows = table[table.workload == workload]
    if rows.empty:
        return nothing("Synthetic accept lengths")
    rows = rows.assign(C=[f"C = {c}" for c in rows.concurrency])[
        ["C", "shown", "speed_up", "speed_up_lo", "speed_up_hi"]
    ]
    base = alt.Chart(rows.round(4)).encode(
        x=alt.X("shown:Q", scale=alt.Scale(zero=False), title="accept length shown by the counters"),
        color=alt.Color("C:N", title=None, sort=None, scale=alt.Scale(range=COLOURS)),
    )
    bars = base.mark_rule().encode(y="speed_up_lo:Q", y2="speed_up_hi:Q")
    dots = base.mark_line(point=True).encode(y=alt.Y("speed_up:Q", title="decode speed-up over base"))
    one = alt.Chart(pd.DataFrame({"y": [1.0]})).mark_rule(strokeDash=[5, 4], color=INK).encode(y="y:Q")
    return alt.layer(one, bars, dots).properties(width=WIDTH - 120, height=260, title="Synthetic accept lengths")


def graded(rows: pd.DataFrame) -> alt.TopLevelMixin:
    """Step cost against accept length, a column an engine: level where a step costs the same whatever is accepted.

    rows: sweeps.Sweeps.graded.
    """
    if rows.empty:
        return nothing("Step cost and acceptance")
    rows = rows.assign(C=[f"C = {c}" for c in rows.concurrency])
    names = ["engine", "C", "drafter", "configuration", "tokens_per_step", "step_cost", "step_cost_lo", "step_cost_hi"]
    base = alt.Chart().encode(
        x=alt.X("tokens_per_step:Q", scale=alt.Scale(zero=False), title="accept length (tokens per step)"),
        color=alt.Color("C:N", title=None, sort=None, scale=alt.Scale(range=COLOURS)),
    )
    bars = base.mark_rule().encode(y="step_cost_lo:Q", y2="step_cost_hi:Q")
    lines = base.mark_line().encode(y="step_cost:Q", detail="drafter:N")
    dots = base.mark_point(filled=True, size=60).encode(
        y=alt.Y("step_cost:Q", title="r: plain steps a step costs"),
        shape=alt.Shape("drafter:N", title=None),
        tooltip=["configuration", "drafter", "tokens_per_step", "step_cost"],
    )
    width = (WIDTH - 140) // max(rows.engine.nunique(), 1)
    return (
        alt.layer(bars, lines, dots, data=rows[names].round(4))
        .properties(width=width, height=240)
        .facet(column=alt.Column("engine:N", title=None))
        .properties(title="Step cost and acceptance")
    )


def sweep(rows: pd.DataFrame) -> alt.TopLevelMixin:
    """Throughput over base against concurrency, one line a K, a column a context, a row an engine.

    rows: sweeps.Sweeps.at_their_best.
    """
    if rows.empty:
        return nothing("K, context and concurrency")
    names = ["engine", "workload", "concurrency", "K", "speed_up", "speed_up_lo", "speed_up_hi"]
    rows = rows.assign(K=[f"K = {k:.0f}" for k in rows.k])[names].round(4)
    base = alt.Chart().encode(
        x=alt.X("concurrency:Q", scale=LOG_C, title="concurrent requests"),
        color=alt.Color("K:N", title=None, scale=alt.Scale(range=COLOURS)),
    )
    bars = base.mark_rule().encode(y="speed_up_lo:Q", y2="speed_up_hi:Q")
    lines = base.mark_line(point=True).encode(y=alt.Y("speed_up:Q", title="throughput / base"))
    one = alt.Chart().mark_rule(strokeDash=[5, 4], color=INK).encode(y=alt.datum(1.0))
    size = {"width": (WIDTH - 140) // max(rows.workload.nunique(), 1), "height": 170}
    return (
        alt.layer(one, bars, lines, data=rows)
        .properties(**size)
        .facet(column=alt.Column("workload:N", title=None), row=alt.Row("engine:N", title=None))
        .properties(title="K, context and concurrency")
    )
