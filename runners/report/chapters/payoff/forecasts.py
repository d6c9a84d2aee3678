"""Forecasts beside what was measured: one concurrency held out, and points that were forecast before measuring."""

import pandas as pd

from runners.analyse.crossover import HELD_OUT, errors
from runners.core import format
from runners.report.columns import interval_column


def ahead_sentence(scores: pd.DataFrame) -> str:
    """How the forecasts made before measuring did (scores: `forecasts.scored`), as a list.

    Each form of the model, new points and points that it had seen, and what was fitted to another machine's cells
    stand apart: a median over all of them would hide which kind is good.
    """
    if scores.empty:
        return f"Forecasts made before measuring: {format.NOT_MEASURED}."
    lines = []
    by = ["terms", *(scores[name].astype(bool) for name in ("seen", "elsewhere"))]
    for (terms, seen, elsewhere), part in scores.groupby(by, sort=False):
        median, worst = errors(part)
        words = "points that the model had seen in earlier runs" if seen else "new points"
        words += ", fitted to *another machine's* cells" if elsewhere else ""
        lines.append(
            f"- terms {terms}, {len(part)} {words}: **median error {median:.1%}, worst {worst:.1%}**; "
            f"{part['within'].astype(bool).mean():.0%} of the measured values inside the forecast's interval"
            f"{_error_by_half(part)}"
        )
    noise = scores["noise"].astype(float).dropna()
    made = f"They were made between {scores['made_at'].min()[:16]} and {scores['made_at'].max()[:16]}."
    floor = (
        f" The measured speed-ups themselves are known to {noise.median():.1%} (median standard error over repeats)."
        if len(noise)
        else ""
    )
    return "\n".join([*lines, "", made + floor])


def _error_by_half(part: pd.DataFrame) -> str:
    """Which half of the forecast erred: the accept length, or the step's cost."""
    length = part["tokens_per_step"].astype(float) / part["measured_length"].astype(float)
    cost = (1 + part["error"].astype(float)) / length
    return (
        f" (of it the accept length {(length - 1).abs().median():.1%}, the step cost {(cost - 1).abs().median():.1%})"
    )


def ahead_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Each forecast made before measuring beside what was measured after it."""
    lengths = zip(scores["tokens_per_step"].astype(float), scores["measured_length"].astype(float), strict=True)
    table = pd.DataFrame(
        {
            "configuration": scores["configuration"],
            "workload": scores["workload"],
            "C": scores["concurrency"],
            "forecast": interval_column(scores, "speed_up"),
            "measured": scores["measured"].astype(float).round(2),
            "error": [f"{e:+.1%}" for e in scores["error"].astype(float)],
            "accept length": [f"{forecast:.2f}, was {measured:.2f}" for forecast, measured in lengths],
            "known": ["synthetic" if f == "pretended" else "forecast too" for f in scores["length_from"]],
            "terms": scores["terms"],
            "new": ["no" if s else "yes" for s in scores["seen"].astype(bool)],
            "fitted to": ["another machine" if e else "this machine" for e in scores["elsewhere"].astype(bool)],
        }
    )
    # A column with one value for all rows tells nothing there; `ahead_sentence` names it.
    shared = {"terms": scores["terms"].nunique() < 2, "fitted to": not scores["elsewhere"].astype(bool).any()}
    return table.drop(columns=[name for name, same in shared.items() if same])


def held_out_sentence(scores: pd.DataFrame) -> str:
    """How well the step model forecasts the concurrency that was kept out of its fit (scores: `crossover.score`)."""
    if scores.empty:
        return f"Forecasts: {format.NOT_MEASURED}."
    median, worst = errors(scores)
    inside = scores["within"].mean()
    return (
        f"**Speed-ups at C={HELD_OUT}, forecast from the cells of the other concurrencies: median error "
        f"{median:.1%}, worst {worst:.1%} over {len(scores)} points; "
        f"{inside:.0%} of the measured ones lie in the forecast's interval.**"
    )


def held_out_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Forecast beside measured at the concurrency that was kept out."""
    return pd.DataFrame(
        {
            "configuration": scores.configuration,
            "workload": scores.workload,
            "C": scores.concurrency,
            "forecast": interval_column(scores, "speed_up"),
            "measured": scores.measured.round(2),
            "error": [f"{e:+.1%}" for e in scores.error],
        }
    )
