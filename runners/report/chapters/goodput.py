"""Goodput as a table for reading."""

import pandas as pd

from runners.core import format


def shown(found: pd.DataFrame) -> pd.DataFrame:
    """`table` for reading."""
    values = found[["goodput", "goodput_lo", "goodput_hi"]].itertuples(index=False)
    return pd.DataFrame(
        {
            "configuration": found.configuration,
            "workload": found.workload,
            "C": found.concurrency,
            "goodput, tok/s": [format.interval_text(*v, 1) for v in values],
            "requests within the limits": [f"{m:.0%}" for m in found.met],
            "throughput, tok/s": found.throughput.round(1),
        }
    )
