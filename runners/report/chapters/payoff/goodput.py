"""Goodput as a table, and the limits it is counted under."""

import pandas as pd

from runners.analyse import goodput
from runners.profiles.latency import LatencyLimits
from runners.report.columns import interval_column


def measured(cells: pd.DataFrame, requests: pd.DataFrame, limits: LatencyLimits | None) -> pd.DataFrame:
    """`goodput.table`; empty where the profile sets no limits or nothing was measured."""
    if limits is None or cells.empty:
        return pd.DataFrame(columns=goodput.COLUMNS)
    return goodput.table(cells, requests, limits)


def limits_sentence(limits: LatencyLimits) -> str:
    """The profile's latency limits."""
    return f"Limits: {limits.ttft_ms:g} ms to the first token, {limits.tpot_ms:g} ms a token after it."


def goodput_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Goodput beside throughput, and the share of requests that kept within the limits."""
    return pd.DataFrame(
        {
            "configuration": rows.configuration,
            "workload": rows.workload,
            "C": rows.concurrency,
            "goodput, tok/s": interval_column(rows, "goodput", 1),
            "requests within the limits": [f"{m:.0%}" for m in rows.met],
            "throughput, tok/s": rows.throughput.round(1),
        }
    )


def best_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The configuration and concurrency of the highest goodput by workload."""
    return goodput_table(goodput.best(rows))
