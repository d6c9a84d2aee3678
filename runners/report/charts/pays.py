"""Does speculation pay: the grid of all answers, and the ratios with their intervals as a forest.

Both say an answer in words or by shape as well as by colour, so that they read in grey and for colour-blind readers.
"""

import altair as alt
import numpy as np
import pandas as pd

from runners.analyse import results
from runners.analyse.inference import NO, NO_DIFFERENCE, UNDECIDED, YES
from runners.report.charts.style import INK, WIDTH, nothing

TITLE = "Does speculation pay?"
VOID = "void"
LOSES, EVEN, PAYS = "#d55e00", "#ffffff", "#0072b2"
DARK = 0.6  # of a shade: white text from here on
LABELS = 230  # pixels of the configurations' names
CELL, ROW = 30, 15  # pixels: the height of a cell of the grid, of a row of the forest
POINT = ["configuration", "workload", "concurrency"]
COLUMNS = [*POINT, "engine", "method", "speed_up", "speed_up_lo", "speed_up_hi", "pays"]
WORDS = {YES: "pays", NO: "loses", NO_DIFFERENCE: "same", UNDECIDED: "open"}
SHAPES = {YES: "triangle-right", NO: "triangle-left", NO_DIFFERENCE: "square", UNDECIDED: "circle"}


def answered(verdict: dict) -> pd.DataFrame:
    """A verdict's points, one row each; COLUMNS also where there are none."""
    return pd.DataFrame(verdict["points"]) if verdict["points"] else pd.DataFrame(columns=COLUMNS)


def lost(cells: pd.DataFrame) -> pd.DataFrame:
    """configuration, workload, concurrency of speculative points that were measured and of which every cell is void."""
    drafting = cells[cells["method"] != "none"]
    counts = drafting.assign(ok=drafting["status"] == "ok").groupby(POINT)["ok"].sum()
    return counts[counts == 0].reset_index()[POINT]


def grid(points: pd.DataFrame, void: pd.DataFrame | None = None) -> alt.TopLevelMixin:
    """A row a configuration, a column a concurrency, a panel a workload: the throughput over base, and the answer.

    points: configuration, engine, method, workload, concurrency, speed_up, pays (a verdict's `points`). void:
    configuration, workload, concurrency of points whose cells all failed a gate; they are shown as void.
    """
    frame = _cells(points, void)
    if frame.empty:
        return nothing(TITLE)
    order = list(dict.fromkeys(frame["configuration"]))
    workloads = list(dict.fromkeys(frame["workload"]))
    width = (WIDTH - LABELS) // len(workloads) - 20
    panels = [
        _panel(frame[frame["workload"] == workload], order, i == 0).properties(
            title=workload, width=width, height=CELL * len(order)
        )
        for i, workload in enumerate(workloads)
    ]
    note = [
        "throughput over that of the same engine without speculation;",
        "blue: faster, orange: slower; open: not decided",
    ]
    return alt.hconcat(*panels, title=alt.Title(TITLE, subtitle=note))


def _cells(points: pd.DataFrame, void: pd.DataFrame | None) -> pd.DataFrame:
    """One row a cell of the grid: shade (-1 halves the speed, 1 doubles it), both lines of its text, their colour."""
    known = points[points["speed_up"].notna()]
    known = results.ordered(known, ["workload", "concurrency"]) if len(known) else known
    shade = np.log2(known["speed_up"].astype(float)).clip(-1, 1)
    frame = pd.DataFrame(
        {
            "configuration": known["configuration"],
            "workload": known["workload"],
            "C": known["concurrency"].astype(int),
            "shade": shade.round(3),
            "ratio": [f"{value:.2f}" for value in known["speed_up"]],
            "answer": [WORDS.get(p, p) for p in known["pays"]],
            "ink": np.where(shade.abs() > DARK, "#ffffff", INK),
        }
    )
    if void is None or void.empty:
        return frame
    lost = void.rename(columns={"concurrency": "C"})[["configuration", "workload", "C"]].drop_duplicates()
    return pd.concat([frame, lost.assign(shade=0.0, ratio="", answer=VOID, ink=INK)], ignore_index=True)


def _panel(frame: pd.DataFrame, order: list[str], named: bool) -> alt.LayerChart:
    axis = alt.Axis(labelLimit=LABELS, labelFontSize=11, ticks=False, domain=False) if named else None
    base = alt.Chart(frame).encode(
        x=alt.X("C:O", title="requests at once", axis=alt.Axis(labelAngle=0, ticks=False, domain=False)),
        y=alt.Y("configuration:N", sort=order, title=None, axis=axis, scale=alt.Scale(domain=order)),
    )
    scale = alt.Scale(domain=[-1, 0, 1], range=[LOSES, EVEN, PAYS], interpolate="rgb")
    seen = ["configuration:N", "workload:N", "C:O", "ratio:N", "answer:N"]
    ink = alt.Color("ink:N", scale=None)
    return alt.layer(
        base.mark_rect(stroke="#cccccc").encode(color=alt.Color("shade:Q", scale=scale, legend=None), tooltip=seen),
        base.mark_text(fontSize=12, dy=-6).encode(text="ratio:N", color=ink),
        base.mark_text(fontSize=10, dy=7).encode(text="answer:N", color=ink),
    ).resolve_scale(color="independent")


def forest(points: pd.DataFrame, margin: float) -> alt.TopLevelMixin:
    """Each ratio with its interval beside the margin band, the largest gains first, a panel a workload.

    points: as for `grid`, with speed_up_lo and speed_up_hi. margin: the profile's practical margin, a share.
    """
    known = points[points["speed_up"].notna()]
    if known.empty:
        return nothing(TITLE)
    names = known["configuration"] + " · C=" + known["concurrency"].astype(int).astype(str)
    frame = known.assign(point=names, answer=[WORDS.get(p, p) for p in known["pays"]])
    keep = ["point", "workload", "method", "engine", "answer", "speed_up", "speed_up_lo", "speed_up_hi"]
    frame = frame[keep].astype({"speed_up": float, "speed_up_lo": float, "speed_up_hi": float}).round(3)
    order = frame.groupby("point")["speed_up"].mean().sort_values(ascending=False).index.tolist()
    workloads = list(dict.fromkeys(frame["workload"]))
    width = (WIDTH - LABELS) // len(workloads) - 20
    ends = frame[["speed_up", "speed_up_lo", "speed_up_hi"]]
    domain = [round(max(float(ends.min().min()) * 0.95, 0.05), 3), round(min(float(ends.max().max()) * 1.05, 20), 3)]
    panels = [
        _ratios(frame[frame["workload"] == workload], order, domain, margin, i == 0).properties(
            title=workload, width=width, height=ROW * len(order)
        )
        for i, workload in enumerate(workloads)
    ]
    note = f"bars: intervals; grey band: within {margin:.0%} of no difference; shape: the answer"
    return alt.hconcat(*panels, title=alt.Title("Throughput over base", subtitle=note))


def _ratios(frame: pd.DataFrame, order: list[str], domain: list[float], margin: float, named: bool) -> alt.LayerChart:
    scale = alt.Scale(type="log", domain=domain, nice=False, clamp=True)
    axis = alt.Axis(values=[0.25, 0.5, 0.7, 1, 1.4, 2, 4], format=".2~f", gridOpacity=0.5)
    x = alt.X("speed_up:Q", scale=scale, axis=axis, title="ratio (log scale)")
    label = alt.Axis(labelLimit=LABELS, ticks=False) if named else None
    y = alt.Y("point:N", sort=order, title=None, axis=label, scale=alt.Scale(domain=order))
    band = pd.DataFrame({"low": [1 - margin], "high": [1 + margin]})
    words = list(WORDS.values())
    shape = alt.Shape("answer:N", scale=alt.Scale(domain=words, range=list(SHAPES.values())), title="speculation")
    colours = alt.Scale(domain=words, range=[PAYS, LOSES, INK, "#999999"])
    colour = alt.Color("answer:N", scale=colours, title="speculation")
    rows = alt.Chart(frame).encode(y=y, color=colour)
    seen = ["point:N", "workload:N", "speed_up:Q", "speed_up_lo:Q", "speed_up_hi:Q", "answer:N"]
    return alt.layer(
        alt.Chart(band).mark_rect(color="#dddddd", opacity=0.6).encode(x=alt.X("low:Q", scale=scale), x2="high:Q"),
        rows.mark_rule(strokeWidth=1.5).encode(x=alt.X("speed_up_lo:Q", scale=scale), x2="speed_up_hi:Q"),
        rows.mark_point(filled=True, size=55, opacity=1).encode(x=x, shape=shape, tooltip=seen),
    )
