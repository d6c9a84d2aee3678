"""Figures as finished text for prose: each chapter's keys are made of these."""

from collections.abc import Iterator

import pandas as pd

from runners.core import format

MISSING = format.NOT_MEASURED


def between(lo: float, hi: float, decimals: int = 1) -> str:
    return MISSING if pd.isna(lo) else f"{lo:,.{decimals}f} to {hi:,.{decimals}f}"


def span_text(values: pd.Series) -> str:
    if values.empty:
        return MISSING
    lo, hi = int(values.min()), int(values.max())
    return str(lo) if lo == hi else f"{lo} to {hi}"


def triple(row, name: str, decimals: int = 2) -> str:
    return MISSING if row is None else format.interval_text(row[name], row[f"{name}_lo"], row[f"{name}_hi"], decimals)


def at(frame: pd.DataFrame, configuration: str, workload: str, concurrency: int):
    rows = frame[
        (frame.configuration == configuration) & (frame.workload == workload) & (frame.concurrency == concurrency)
    ]
    return rows.iloc[0] if len(rows) else None


def point_keys(statuses: pd.DataFrame, points, speculative: bool) -> Iterator[tuple[str, str, int, str]]:
    """(configuration, workload, concurrency, key suffix) for every point of every configuration."""
    rows = statuses[statuses.method != "none"] if speculative else statuses
    for name in rows.configuration:
        for workload, concurrency in points:
            yield name, workload, concurrency, f"{format.slug(name)}_{format.slug(workload)}_c{concurrency}"
