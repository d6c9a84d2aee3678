"""The charts of the book: one light look, a colour a method, a shape an engine, void cells hollow.

Altair with its default renderer: the page brings the Vega scripts, the chart only its specification. Colours
are from Okabe and Ito's palette, which stays apart for colour-blind readers; shapes say the engine, so that
colour is never the only sign.
"""

import altair as alt
import pandas as pd

from runners import acceptance, statistics, tables

WIDTH = 640
METHODS = {"none": "no speculation", "ngram": "n-gram", "eagle3": "EAGLE-3", "draft_model": "draft model"}
COLOURS = {"none": "#4d4d4d", "ngram": "#0072b2", "eagle3": "#d55e00", "draft_model": "#009e73"}
SPARE = ["#009e73", "#cc79a7", "#e69f00"]  # for methods newer than this list
SHAPES = ["circle", "square", "triangle-up", "diamond"]
INK, GRID = "#333333", "#e5e5e5"


@alt.theme.register("specverdict", enable=True)
def theme() -> alt.theme.ThemeConfig:
    """A white panel in light and dark pages alike, with text large enough to read at column width."""
    axis = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": GRID}
    axis |= {"labelColor": INK, "titleColor": INK, "domainColor": "#999999", "tickColor": "#999999"}
    legend = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "orient": "bottom"}
    return {
        "config": {
            "background": "white",
            "font": "system-ui, sans-serif",
            "padding": 8,
            "view": {"stroke": "#cccccc"},
            "axis": axis,
            "legend": legend | {"labelColor": INK, "titleColor": INK, "labelLimit": 320, "symbolSize": 90},
            "header": {
                "labelFontSize": 13,
                "titleFontSize": 12,
                "labelColor": INK,
                "labelFontWeight": "bold",
            },
            "title": {"fontSize": 14, "anchor": "start", "color": INK, "subtitleColor": "#666666"},
        }
    }


def named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(method_name=[METHODS.get(m, m) for m in frame.method])


def colour_of(frame: pd.DataFrame) -> alt.Color:
    methods = sorted(set(frame.method), key=lambda m: (tables.method_rank(m), m))
    spare = iter(SPARE * len(methods))
    colours = [COLOURS.get(m) or next(spare) for m in methods]
    names = [METHODS.get(m, m) for m in methods]
    return alt.Color("method_name:N", title="method", scale=alt.Scale(domain=names, range=colours))


def shape_of(frame: pd.DataFrame) -> alt.Shape:
    engines = sorted(set(frame.engine))
    marks = (SHAPES * len(engines))[: len(engines)]
    return alt.Shape("engine:N", title="engine", scale=alt.Scale(domain=engines, range=marks))


def _concurrency(frame: pd.DataFrame) -> alt.X:
    steps = sorted(int(c) for c in set(frame.concurrency))
    scale = alt.Scale(type="log", base=2, nice=False, padding=18)
    axis = alt.Axis(values=steps, format="d", grid=False)
    return alt.X("concurrency:Q", title="concurrency C (log scale)", scale=scale, axis=axis)


def nothing(what: str) -> alt.Chart:
    """What stands in a chart's place when there is nothing to draw: a sentence, not an empty frame."""
    text = pd.DataFrame({"text": [f"{what}: {tables.NOT_MEASURED}"]})
    return (
        alt.Chart(text).mark_text(fontSize=14, color=INK).encode(text="text:N").properties(width=WIDTH - 100, height=60)
    )


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
    column = statistics.METRICS[metric][0]
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
        panels.append(alt.layer(*layers).properties(title=workload, width=_panel(len(workloads)), height=260))
    note = "bars: intervals; hollow, dashed: void cells, in no average" if len(void) else "bars: intervals"
    return alt.hconcat(*panels, title=alt.Title(title, subtitle=note)).resolve_scale(y="shared")


def _panel(count: int) -> int:
    return max(160, (WIDTH - 70) // count - 10)


def throughput(summary: pd.DataFrame, cells: pd.DataFrame) -> alt.TopLevelMixin:
    """Output throughput of all streams together against C."""
    return against_concurrency(summary, cells, "throughput", "Output throughput", "output tokens/s, all streams")


def stream(summary: pd.DataFrame, cells: pd.DataFrame) -> alt.TopLevelMixin:
    """Decode speed of one stream (median over requests) against C."""
    return against_concurrency(summary, cells, "stream", "Speed of one stream", "decode tokens/s per stream")


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
        panels.append(alt.layer(base.mark_bar(), number).properties(title=str(name), width=_panel(2) - 25, height=170))
    chart = alt.concat(*panels, columns=2)
    return chart.properties(title=alt.Title("Acceptance per position", subtitle="of the steps that had a draft"))


def breakeven(costs: pd.DataFrame, workload: str | None = None) -> alt.TopLevelMixin:
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
    line = alt.Chart(pd.DataFrame({"x": [low, top], "y": [low, top]})).mark_line(color="#888888", strokeDash=[5, 4])
    line = line.encode(
        x=alt.X("x:Q", scale=scale, title="step-cost ratio r", axis=alt.Axis(tickCount=8)),
        y=alt.Y("y:Q", scale=scale),
    )
    # Beside the middle of the line, where points are rare: they gather at its lower end or far off it.
    span = top - low
    words = [(0.47, "right", "decoding gains (AL > r)"), (0.53, "left", "decoding loses (AL < r)")]
    sides = [
        alt.Chart(pd.DataFrame({"x": [low + at * span], "y": [low + 0.5 * span], "t": [words_]}))
        .mark_text(align=align, color="#666666", fontSize=12)
        .encode(x=alt.X("x:Q", scale=scale), y=alt.Y("y:Q", scale=scale), text="t:N")
        for at, align, words_ in words
    ]
    points = alt.Chart(frame).encode(color=colour_of(frame))
    y = alt.Y("tokens_per_step:Q", scale=scale, title="tokens per step (AL)", axis=alt.Axis(tickCount=8))
    bars = points.mark_rule(strokeWidth=1.5).encode(
        x=alt.X("step_cost_lo:Q", scale=scale, title="step-cost ratio r"), x2="step_cost_hi:Q", y=y
    )
    seen = [
        "configuration:N",
        "workload:N",
        "concurrency:Q",
        "tokens_per_step:Q",
        "step_cost:Q",
        "speed_up:Q",
    ]
    dots = points.mark_point(filled=True, size=80, opacity=0.9).encode(
        x=alt.X("step_cost:Q", scale=scale, title="step-cost ratio r"), y=y, shape=shape_of(frame), tooltip=seen
    )
    title = alt.Title("What a step yields against what it costs", subtitle="bars: intervals of r")
    return alt.layer(line, *sides, bars, dots).properties(width=WIDTH - 90, height=360, title=title)
