"""The step model's coefficients, where each drafter stops paying, and the sweeps: tables and sentences."""

import numpy as np
import pandas as pd

from runners.analyse import step_model, sweeps
from runners.analyse.crossover import crossover
from runners.analyse.step_model import Models
from runners.analyse.sweeps import ITSELF
from runners.core import format
from runners.report.columns import interval_column

NONE = "all up to 64"  # it pays at every concurrency of the map


def coefficients_table(found: Models) -> pd.DataFrame:
    """One row an engine and drafter: each coefficient with its interval over the refits, in milliseconds."""
    rows = []
    for engine, (model, _) in found.items():
        for drafter in model.drafters:
            refits = [list(refit.of(drafter).values()) for refit in model.refits]
            lo, hi = np.quantile(refits, [0.025, 0.975], axis=0)
            values = zip(model.coefficients.of(drafter).values(), lo, hi, strict=True)
            rows.append([engine, drafter, *(f"{v:.3g} [{low:.3g}, {high:.3g}]" for v, low, high in values)])
    return pd.DataFrame(rows, columns=["engine", "drafter", *step_model.SYMBOLS])


def crossovers_table(found: Models) -> pd.DataFrame:
    """One row an EAGLE-3 configuration and workload: its accept length and where it stops paying."""
    rows = []
    for engine, (model, points) in found.items():
        speculative = points[points.k > 0]
        for (name, k, workload), group in speculative.groupby(["configuration", "k", "workload"], sort=False):
            length = group.tokens_per_step.mean()
            stops = crossover(model, k, group.context.mean(), length, group.drafter.iloc[0])
            point, lo, hi = (NONE if c is None else "nowhere" if c == 0 else f"{c:.0f}" for c in stops)
            text = point if point == lo == hi else f"{point} [{lo}, {hi}]"
            rows.append([name, engine, int(k), workload, round(length, 2), text])
    return pd.DataFrame(rows, columns=["configuration", "engine", "K", "workload", "tokens per step", "pays up to C"])


def drafted_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Real drafters at several K and contexts (rows: `Sweeps.drafted`)."""
    return pd.DataFrame(
        {
            "configuration": rows.configuration,
            "K": rows.k.astype(int),
            "workload": rows.workload,
            "C": rows.concurrency,
            "tokens per step": rows.tokens_per_step.round(2),
            "r": rows.step_cost.round(2),
            "throughput / base": interval_column(rows, "speed_up"),
        }
    )


def fastest_k_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The K with the highest throughput at each point (rows: `Sweeps.at_their_best`)."""
    return drafted_table(sweeps.fastest_k(rows))


def graded_sentence(rows: pd.DataFrame) -> str:
    """How much r moves while the accept length does, a line an engine."""
    lines = []
    for engine, own in rows[rows.drafter != ITSELF].groupby("engine"):
        cost = own.groupby(["workload", "k", "drafter", "concurrency"]).step_cost
        spread = (cost.max() / cost.min() - 1).groupby("concurrency").max()
        lines.append(
            f"- {engine}: accept lengths from {own.tokens_per_step.min():.2f} to {own.tokens_per_step.max():.2f}; "
            + ", ".join(f"at C={c} *r* differs by {value:.0%}" for c, value in spread.items())
        )
    return "\n".join(lines) or f"Graded acceptance: {format.NOT_MEASURED}."


def graded_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One drafter served at several accept lengths (rows: `Sweeps.graded`)."""
    return pd.DataFrame(
        {
            "configuration": rows.configuration,
            "drafter": rows.drafter,
            "K": rows.k.astype(int),
            "C": rows.concurrency,
            "tokens per step": rows.tokens_per_step.round(2),
            "r": interval_column(rows, "step_cost"),
            "decode at once": rows.batch.astype(float).round(1),
        }
    )
