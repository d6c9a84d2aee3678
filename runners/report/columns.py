"""Columns of numbers as columns of text."""

import pandas as pd

from runners.core import format


def interval_column(frame: pd.DataFrame, name: str, decimals: int = 2) -> list[str]:
    """Column `name` with its bounds `name_lo` and `name_hi`: `1.05 [1.02, 1.08]`, the figure alone without bounds."""
    rows = frame[[name, f"{name}_lo", f"{name}_hi"]].itertuples(index=False)
    return [format.interval_text(point, lo, hi, decimals) for point, lo, hi in rows]
