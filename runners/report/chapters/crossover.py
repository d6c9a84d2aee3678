"""Where speculation stops paying, K and acceptance, as tables for reading."""

import numpy as np
import pandas as pd

from runners.analyse import step_model
from runners.analyse.crossover import Found, crossover
from runners.analyse.sweeps import COST, ITSELF, SPEED_UP
from runners.core import format

NONE = "all up to 64"


def coefficients(found: Found) -> pd.DataFrame:
    """One row an engine and drafter: each coefficient with its interval over the refits, in milliseconds."""
    rows = []
    for engine, (model, _) in found.items():
        for drafter in model.drafters:
            refits = [list(refit.of(drafter).values()) for refit in model.refits]
            lo, hi = np.quantile(refits, [0.025, 0.975], axis=0)
            values = zip(model.coefficients.of(drafter).values(), lo, hi, strict=True)
            rows.append([engine, drafter, *(f"{v:.3g} [{low:.3g}, {high:.3g}]" for v, low, high in values)])
    return pd.DataFrame(rows, columns=["engine", "drafter", *step_model.SYMBOLS])


def crossovers(found: Found) -> pd.DataFrame:
    """One row an EAGLE-3 configuration and workload: its accept length and where it stops paying."""
    rows = []
    for engine, (model, points) in found.items():
        spec = points[points.k > 0]
        for (name, k, workload), group in spec.groupby(["configuration", "k", "workload"], sort=False):
            length = group.tokens_per_step.mean()
            at = crossover(model, k, group.context.mean(), length, group.drafter.iloc[0])
            words = [NONE if v is None else "nowhere" if v == 0 else f"{v:.0f}" for v in at]
            text = words[0] if len(set(words)) == 1 else f"{words[0]} [{words[1]}, {words[2]}]"
            rows.append([name, engine, int(k), workload, round(length, 2), text])
    return pd.DataFrame(rows, columns=["configuration", "engine", "K", "workload", "tokens per step", "pays up to C"])


def drafted_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """`Sweeps.drafted` for reading."""
    return pd.DataFrame(
        {
            "configuration": rows.configuration,
            "K": rows.k.astype(int),
            "workload": rows.workload,
            "C": rows.concurrency,
            "tokens per step": rows.tokens_per_step.round(2),
            "r": rows.step_cost.round(2),
            "throughput / base": [format.interval_text(*v) for v in rows[SPEED_UP].itertuples(index=False)],
        }
    )


def graded_sentence(rows: pd.DataFrame) -> str:
    """How much r moves while the accept length does, a line an engine; empty without rows."""
    lines = []
    for engine, own in rows[rows.drafter != ITSELF].groupby("engine"):
        cost = own.groupby(["workload", "k", "drafter", "concurrency"]).step_cost
        spread = (cost.max() / cost.min() - 1).groupby("concurrency").max()
        lines.append(
            f"- {engine}: accept lengths from {own.tokens_per_step.min():.2f} to {own.tokens_per_step.max():.2f}; "
            + ", ".join(f"at C={c} *r* differs by {value:.0%}" for c, value in spread.items())
        )
    return "\n".join(lines)


def graded_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """`Sweeps.graded` for reading."""
    return pd.DataFrame(
        {
            "configuration": rows.configuration,
            "drafter": rows.drafter,
            "K": rows.k.astype(int),
            "C": rows.concurrency,
            "tokens per step": rows.tokens_per_step.round(2),
            "r": [format.interval_text(*v) for v in rows[COST].itertuples(index=False)],
            "decode at once": rows.batch.astype(float).round(1),
        }
    )
