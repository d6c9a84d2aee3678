"""Forecasts beside what was measured after them, for reading (forecasts.scored)."""

import pandas as pd

from runners import intervals, payoff, tables


def said(scores: pd.DataFrame) -> str:
    """A list on how forecasts did: each form of the model apart, new points apart from those that it had seen, and
    what was fitted to another machine's cells apart from both.
    """
    if scores.empty:
        return f"Forecasts made before measuring: {tables.NOT_MEASURED}."
    lines = []
    by = ["terms", *(scores[name].astype(bool) for name in ("seen", "elsewhere"))]
    for (terms, seen, elsewhere), part in scores.groupby(by, sort=False):
        median, worst = payoff.errors(part)
        words = "points that the model had seen in earlier runs" if seen else "new points"
        words += ", fitted to *another machine's* cells" if elsewhere else ""
        lines.append(
            f"- terms {terms}, {len(part)} {words}: **median error {median:.1%}, worst {worst:.1%}**; "
            f"{part['within'].astype(bool).mean():.0%} of the measured values inside the forecast's interval"
            f"{_parted(part)}"
        )
    noise = scores["noise"].astype(float).dropna()
    made = f"They were made between {scores['made_at'].min()[:16]} and {scores['made_at'].max()[:16]}."
    floor = (
        f" The measured speed-ups themselves are known to {noise.median():.1%} (median standard error over repeats)."
        if len(noise)
        else ""
    )
    return "\n".join([*lines, "", made + floor])


def _parted(part: pd.DataFrame) -> str:
    """Which half of the forecast erred: the accept length, or the step's cost."""
    length = part["tokens_per_step"].astype(float) / part["measured_length"].astype(float)
    cost = (1 + part["error"].astype(float)) / length
    return (
        f" (of it the accept length {(length - 1).abs().median():.1%}, the step cost {(cost - 1).abs().median():.1%})"
    )


def shown(scores: pd.DataFrame) -> pd.DataFrame:
    """Forecast beside measured, for reading."""
    triples = scores[["speed_up", "speed_up_lo", "speed_up_hi"]].itertuples(index=False)
    lengths = zip(scores["tokens_per_step"].astype(float), scores["measured_length"].astype(float), strict=True)
    table = pd.DataFrame(
        {
            "configuration": scores["configuration"],
            "workload": scores["workload"],
            "C": scores["concurrency"],
            "forecast": [intervals.written(*v) for v in triples],
            "measured": scores["measured"].astype(float).round(2),
            "error": [f"{e:+.1%}" for e in scores["error"].astype(float)],
            "accept length": [f"{told:.2f}, was {was:.2f}" for told, was in lengths],
            "known": ["pretended" if f == "pretended" else "forecast too" for f in scores["length_from"]],
            "terms": scores["terms"],
            "new": ["no" if s else "yes" for s in scores["seen"].astype(bool)],
            "fitted to": ["another machine" if e else "this machine" for e in scores["elsewhere"].astype(bool)],
        }
    )
    # What all rows share says nothing a row; `said` names it.
    shared = {"terms": scores["terms"].nunique() < 2, "fitted to": not scores["elsewhere"].astype(bool).any()}
    return table.drop(columns=[name for name, same in shared.items() if same])
