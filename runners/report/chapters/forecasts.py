"""Forecasts beside what was measured after them: tables, sentences and glue values."""

import pandas as pd

from runners.analyse import crossover
from runners.analyse.crossover import HELD_OUT, errors
from runners.core import format


def forecasts_sentence(scores: pd.DataFrame) -> str:
    """A list on how forecasts did: each form of the model apart, new points apart from those that it had seen, and
    what was fitted to another machine's cells apart from both.
    """
    if scores.empty:
        return f"Forecasts made before measuring: {format.NOT_MEASURED}."
    lines = []
    by = ["terms", *(scores[name].astype(bool) for name in ("seen", "elsewhere"))]
    for (terms, seen, elsewhere), part in scores.groupby(by, sort=False):
        median, worst = crossover.errors(part)
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
            "forecast": [format.interval_text(*v) for v in triples],
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


def ratio_line(found: dict[str, float]) -> str:
    return ", ".join(f"{engine}: {value:.2f}" for engine, value in found.items())


def quoted(found: dict, scores: pd.DataFrame) -> dict[str, str]:
    """Glue keys of the chapter."""
    median, worst = errors(scores)
    missing = format.NOT_MEASURED
    texts = {"payoff_median_error": missing, "payoff_worst_error": missing, "payoff_break_even": missing}
    if len(scores):
        texts |= {"payoff_median_error": f"{median:.1%}", "payoff_worst_error": f"{worst:.1%}"}
    if found:
        at_one = {
            f"{e}, {d}": float(m.break_even(3, 1, p.context.mean(), d))
            for e, (m, p) in found.items()
            for d in m.drafters
        }
        texts["payoff_break_even"] = ratio_line(at_one)
    return texts


def score_sentence(texts: dict[str, str], scores: pd.DataFrame) -> str:
    """One sentence on the forecasts."""
    if scores.empty:
        return f"Forecasts: {format.NOT_MEASURED}."
    inside = scores["within"].mean()
    return (
        f"**Speed-ups at C={HELD_OUT}, forecast from the cells of the other concurrencies: median error "
        f"{texts['payoff_median_error']}, worst {texts['payoff_worst_error']} over {len(scores)} points; "
        f"{inside:.0%} of the measured ones lie in the forecast's interval.**"
    )


def score_shown(scores: pd.DataFrame) -> pd.DataFrame:
    """Forecast beside measured, for reading."""
    return pd.DataFrame(
        {
            "configuration": scores.configuration,
            "workload": scores.workload,
            "C": scores.concurrency,
            "forecast": [
                format.interval_text(*v)
                for v in scores[["speed_up", "speed_up_lo", "speed_up_hi"]].itertuples(index=False)
            ],
            "measured": scores.measured.round(2),
            "error": [f"{e:+.1%}" for e in scores.error],
        }
    )
