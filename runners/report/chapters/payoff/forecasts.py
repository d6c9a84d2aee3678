"""Forecasts beside what was measured: cells that were kept out, and points that were forecast before measuring."""

import numpy as np
import pandas as pd

from runners.analyse import kept_out
from runners.analyse.crossover import errors
from runners.analyse.forecast_models import LOG_LINEAR, MEAN, MODELS, STEP_MODEL
from runners.core import format
from runners.report.columns import interval_column


def ahead_sentence(scores: pd.DataFrame) -> str:
    """How the forecasts made before measuring did (scores: `forecasts.scored`), as a list.

    Each model and form of it, new points and points that it had seen, and what was fitted to another machine's cells
    stand apart: a median over all of them would hide which kind is good.
    """
    if scores.empty:
        return f"Forecasts made before measuring: {format.NOT_MEASURED}."
    lines = []
    by = ["model", "terms", *(scores[name].astype(bool) for name in ("seen", "elsewhere"))]
    for (model, terms, seen, elsewhere), part in scores.groupby(by, sort=False):
        median, worst = errors(part)
        words = "points that the model had seen in earlier runs" if seen else "new points"
        words += ", fitted to *another machine's* cells" if elsewhere else ""
        lines.append(
            f"- {model}, terms {terms}, {len(part)} {words}: **median error {median:.1%}, worst {worst:.1%}**; "
            f"{_coverage(part)}{_error_by_half(part)}"
        )
    noise = scores["noise"].astype(float).dropna()
    made = f"They were made between {scores['made_at'].min()[:16]} and {scores['made_at'].max()[:16]}."
    floor = (
        f" The measured speed-ups themselves are known to {noise.median():.1%} (median standard error over repeats)."
        if len(noise)
        else ""
    )
    return "\n".join([*lines, "", made + floor])


def _coverage(part: pd.DataFrame) -> str:
    """How many of the measured values lie inside their forecast's interval, of those that have one."""
    within = part["within"].dropna().astype(bool)
    if within.empty:
        return "none has an interval"
    of = "the measured values" if len(within) == len(part) else f"the {len(within)} with an interval"
    return f"{within.mean():.0%} of {of} inside the forecast's interval"


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
            "model": scores["model"],
            "terms": scores["terms"],
            "new": ["no" if s else "yes" for s in scores["seen"].astype(bool)],
            "fitted to": ["another machine" if e else "this machine" for e in scores["elsewhere"].astype(bool)],
        }
    )
    # A column with one value for all rows tells nothing there; `ahead_sentence` names it.
    shared = {name: scores[name].nunique() < 2 for name in ("model", "terms")}
    shared["fitted to"] = not scores["elsewhere"].astype(bool).any()
    return table.drop(columns=[name for name, same in shared.items() if same])


def kept_out_sentence(kept: pd.DataFrame) -> str:
    """How well speed-ups of cells are forecast that the models have not seen, and whether intervals of it hold.

    kept: kept_out.COLUMNS and runs.
    """
    scores = kept_out.scored(kept)
    if scores.empty:
        return f"Forecasts: {format.NOT_MEASURED}."
    own = scores[scores["kept"] != kept_out.RUNS]
    lines = []
    for engine, part in own.groupby("engine"):
        median, worst = errors(part)
        lines.append(f"- {engine}: **median error {median:.1%}, worst {worst:.1%}** over {len(part)} forecasts")
    inside, tried = _intervals_that_held(own)
    held = (
        f"An interval made of these errors, without those of the cells that were kept out together, holds "
        f"{inside} of {tried} measured speed-ups ({inside / tried:.0%}; it is meant to hold 95%)."
        if tried
        else "Too few cells were kept out for an interval."
    )
    return "\n".join([*lines, "", held])


def _intervals_that_held(scores: pd.DataFrame) -> tuple[int, int]:
    """kept_out.coverage over the engines of each set of runs."""
    scores = scores.assign(log_error=-np.log1p(scores["error"].astype(float)))
    found = [kept_out.coverage(part) for _, part in scores.groupby(["runs", "engine"])]
    return sum(inside for inside, _ in found), sum(tried for _, tried in found)


def models_table(kept: pd.DataFrame) -> pd.DataFrame:
    """The models side by side, on the points that all of them forecast: median and worst error of the speed-up."""
    each = kept_out.compared(kept, ["kept", "runs", "engine"])
    together = kept_out.compared(kept, ["kept", "engine"])
    if each.empty:
        return pd.DataFrame()
    rows = pd.concat([each, together.assign(runs="all")], ignore_index=True)
    # The sum of one part alone would tell the part again.
    alone = rows.groupby(["kept", "engine"])["runs"].transform("size") == 2
    order = {way: place for place, way in enumerate([*kept_out.WAYS, kept_out.RUNS])}
    rows = rows[(rows["runs"] != "all") | ~alone].sort_values(["kept", "engine"], kind="stable")
    rows = rows.sort_values("kept", key=lambda column: column.map(order), kind="stable")
    table = rows[["kept", "engine", "runs", "points"]].rename(columns={"kept": "kept out"})
    for model in MODELS:
        pairs = zip(rows[model], rows[f"{model}_worst"], strict=True)
        table[model] = [f"{median:.1%}, {worst:.0%}" for median, worst in pairs]
    for model in (STEP_MODEL, LOG_LINEAR):
        table[f"{MEAN} nearer than {model}"] = [f"{share:.0%}" for share in rows[f"nearer_{model}"]]
    return table.assign(**{"known to": [format.percent(noise) for noise in rows["noise"]]})


def choice_sentence(kept: pd.DataFrame) -> str:
    """Each model over all that was kept out, and how often it had the lowest and the highest median error."""
    groups, whole = kept_out.compared(kept, ["kept", "engine"]), kept_out.compared(kept.assign(every=""), ["every"])
    if groups.empty:
        return f"Models compared: {format.NOT_MEASURED}."
    lowest, highest = (getattr(groups[MODELS], end)(axis=1).value_counts() for end in ("idxmin", "idxmax"))
    lines = [
        f"- {model}: median error {whole[model][0]:.1%}, worst {whole[f'{model}_worst'][0]:.0%}; the lowest median in "
        f"{lowest.get(model, 0)} and the highest in {highest.get(model, 0)}"
        for model in MODELS
    ]
    nearer = " and ".join(f"than the {m} at {whole[f'nearer_{m}'][0]:.0%}" for m in (STEP_MODEL, LOG_LINEAR))
    of = f"{len(groups)} groups (an engine, and what was kept out of its fit)"
    head = f"Over all {whole['points'][0]} forecasts, in {of}:"
    return "\n".join([head, "", *lines, "", f"The {MEAN} is nearer {nearer} of them."])


def kept_out_table(kept: pd.DataFrame) -> pd.DataFrame:
    """Each forecast of a kept-out cell of this profile's own runs beside what was measured."""
    scores = kept_out.scored(kept)
    return pd.DataFrame(
        {
            "configuration": scores["configuration"],
            "workload": scores["workload"],
            "C": scores["concurrency"],
            "kept out": scores["kept"],
            "model": scores["model"],
            "forecast": scores["speed_up"].round(2),
            "measured": scores["measured"].round(2),
            "error": [f"{e:+.1%}" for e in scores["error"]],
        }
    )
