"""Does speculation pay, why, and what would change the answer: sentences and tables of a verdict's points."""

import pandas as pd

from runners.analyse.inference import NO, NO_DIFFERENCE, NOTHING, UNDECIDED, YES
from runners.analyse.multiple_comparisons import FALSE_DISCOVERIES
from runners.core.format import NOT_MEASURED, listed, minutes, triple_text
from runners.report.columns import interval_column, marked


def pays_sentence(verdict: dict) -> str:
    """At how many points speculation pays, and with which configurations."""
    measured = [p for p in verdict["points"] if p["speed_up"] is not None]
    points = [p for p in measured if not is_control(p)]
    if not points:
        return f"Whether speculation pays: {NOT_MEASURED}."
    count = {a: sum(p["pays"] == a for p in points) for a in (YES, NO, NO_DIFFERENCE)}
    where = listed(dict.fromkeys(p["configuration"] for p in points if p["pays"] == YES))
    gains = f"pays at {count[YES]}" + (f" ({where})" if count[YES] else "")
    rest = len(points) - sum(count.values())
    tail = f"loses at {count[NO]}, makes no difference at {count[NO_DIFFERENCE]} and is undecided at {rest}"
    controls = len(measured) - len(points)
    note = f" {controls} points of drafters that accept nothing are not counted." if controls else ""
    note += " One start a point and no earlier campaign: nothing can be decided." if verdict["unit"] == NOTHING else ""
    return f"Of {len(points)} measured points speculation {gains}, {tail}.{note}"


def is_control(point: dict) -> bool:
    """Did the drafter of this point draft and have nothing accepted? They are served to show what it costs."""
    return bool(point["drafted"]) and point["accepted"] == 0


def open_sentence(verdict: dict) -> str:
    """How many points are open, and what more measuring would decide."""
    more = verdict["more"]
    if not more["points"]:
        return f"Open points: {NOT_MEASURED}."
    if not more["open"]:
        return f"No point is open: all {more['points']} are decided."
    are = f"{more['open']} of {more['points']} points {'is' if more['open'] == 1 else 'are'} open"
    if more["unknown"]:
        start = f"one more start of each takes about {minutes(60 * more['minutes'])} and shows what it takes to decide"
        return f"{are}, {more['unknown']} of them without a known error: {start}."
    if not more["decidable"]:
        return f"{are}; their ratios are too near a bound for more starts to decide."
    every = "it" if more["open"] == 1 else "them"
    which = every if more["decidable"] == more["open"] else f"{more['decidable']} of them"
    return f"{are}; about {minutes(60 * more['minutes'])} more would decide {which}, if the ratios are what they seem."


def false_discovery_sentence(verdict: dict) -> str:
    """How many of the points beyond the margin keep their answer when all are corrected together."""
    points = [p for p in verdict["points"] if p["speed_up"] is not None]
    if not points:
        return f"Comparisons: {NOT_MEASURED}."
    tested = [p for p in points if p["p"] is not None]
    if not tested:
        return f"{len(points)} points are compared; none is tested, since a point has too few starts."
    margin = verdict["margin"]
    beyond = [p for p in tested if p["speed_up_lo"] > 1 + margin or p["speed_up_hi"] < 1 - margin]
    kept = sum(p["pays"] in (YES, NO) for p in beyond)
    return (
        f"{len(points)} points are compared; at 95% each, about {FALSE_DISCOVERIES * len(tested):.0f} would differ by "
        f"chance alone. So *yes* and *no* also need a false discovery rate of at most {FALSE_DISCOVERIES:.0%} over all "
        f"of them (Benjamini-Hochberg): of {len(beyond)} intervals beyond the margin {kept} do."
    )


def points_table(verdict: dict) -> pd.DataFrame:
    """Point by point: speed-up over the engine's base, answer, cause, and what would turn the answer."""
    rows = []
    for p in verdict["points"]:
        ratio = triple_text([p["speed_up"], p["speed_up_lo"], p["speed_up_hi"]])
        rows.append([p["configuration"], p["workload"], p["concurrency"], ratio, p["pays"], p["cause"], p["flip"]])
    names = ["configuration", "workload", "C", "throughput / base", "pays", "because", "it takes"]
    return pd.DataFrame(rows, columns=names)


def pays_table(verdict: dict) -> pd.DataFrame:
    """One row a speculative configuration: at how many of its (workload, C) points each answer holds."""
    points = pd.DataFrame(verdict["points"], columns=["configuration", "workload", "concurrency", "pays"])
    rows = []
    for name, group in points.groupby("configuration", sort=False):
        counts = group.pays.value_counts()
        rows.append(
            {
                "configuration": name,
                **{answer: int(counts.get(answer, 0)) for answer in (YES, NO, NO_DIFFERENCE, UNDECIDED)},
            }
        )
    return pd.DataFrame(rows, columns=["configuration", YES, NO, NO_DIFFERENCE, UNDECIDED])


def step_cost_table(costs: pd.DataFrame) -> pd.DataFrame:
    """What a step yields, what it costs in plain steps, and both speed-ups with intervals."""
    lengths = [f"{v:.2f}" if pd.notna(v) else NOT_MEASURED for v in costs.tokens_per_step]
    return pd.DataFrame(
        {
            "configuration": costs.configuration,
            "workload": costs.workload,
            "C": costs.concurrency,
            "tokens per step": marked(lengths, costs.modelled),
            "r = break-even length": marked(interval_column(costs, "step_cost"), costs.modelled),
            "decode speed-up": interval_column(costs, "decode_speed_up"),
            "throughput speed-up": interval_column(costs, "speed_up"),
        }
    )
