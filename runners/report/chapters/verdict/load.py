"""What the chapter shows, and the figures that pages of the book quote from it."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import reported, results
from runners.analyse.verdict import decide, store
from runners.core.format import NOT_MEASURED, number
from runners.report import examples
from runners.report.chapters.verdict import pays, stamp, what_to_serve
from runners.report.charts import pays as grid_points
from runners.report.columns import interval_column

_POINT = ["configuration", "workload", "concurrency", "speed_up", "speed_up_lo", "speed_up_hi"]


@dataclass(frozen=True)
class Data:
    """What the chapter shows."""

    verdict: dict  # decide.decide, as in verdict.json
    cells: pd.DataFrame
    requests: pd.DataFrame
    statuses: pd.DataFrame
    costs: pd.DataFrame  # step_cost.step_costs, as the verdict holds them
    points: pd.DataFrame  # the verdict's points
    lost: pd.DataFrame  # configuration, workload, concurrency of points without a cell that counts
    pairs: pd.DataFrame  # examples.beside_base
    case: pd.DataFrame  # reported, not measured
    stamp: str  # where it comes from, a sentence


def load(runs: str | Path, profile: str, write: bool = False) -> Data:
    """Decide from a profile's runs; `write` also stores verdict.json beside them, which `make serve` reads."""
    verdict = decide.of(runs, profile)
    if write:
        store.write(runs, profile, verdict)
    cells = results.cells(runs, profile)
    return Data(
        verdict,
        cells,
        results.requests(runs, profile),
        results.statuses(runs, profile),
        decide.costs(verdict),
        grid_points.answered(verdict),
        grid_points.lost(cells),
        examples.beside_base(cells),
        reported.case(),
        stamp.sentence(runs, profile),
    )


def glue_values(data: Data) -> dict[str, str]:
    """The figures that pages of the book quote from this chapter."""
    verdict = data.verdict
    uses = {"single": "single_stream", "throughput": "throughput", "goodput": "goodput"}
    values = {f"{name}_sentence": what_to_serve.use_sentences(verdict, use) for name, use in uses.items()}
    values |= {"pays_sentence": pays.pays_sentence(verdict), "text_sentence": what_to_serve.text_sentence(verdict)}
    values |= {"open_sentence": pays.open_sentence(verdict), "stamp_sentence": data.stamp}
    working = [p for p in verdict["points"] if not pays.is_control(p)]
    points = pd.DataFrame(working, columns=[*_POINT, "step_cost"]).dropna(subset=["speed_up"])
    for key, falling in (("gains_most", False), ("loses_most", True)):
        one = points.sort_values("speed_up", ascending=falling, kind="stable").head(1)
        for name in ("configuration", "workload", "concurrency"):
            values[f"{key}_{name}"] = _only(one[name])
        values[f"{key}_speed_up"] = _only(interval_column(one, "speed_up"))
    for key, cost in (("min", points.step_cost.min()), ("max", points.step_cost.max())):
        values[f"step_cost_{key}"] = number(cost) if pd.notna(cost) else NOT_MEASURED
    return values


def _only(values) -> str:
    """The one value as text, or that there is none."""
    return next((str(v) for v in values), NOT_MEASURED)
