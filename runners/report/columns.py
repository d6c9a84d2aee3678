"""Columns of numbers as columns of text."""

from collections.abc import Iterable

import pandas as pd

from runners.core import format

MARK = ", modelled"  # of a figure that rests on steps which the engine does not count (acceptance.is_modelled)


def marked(texts: Iterable[str], modelled: Iterable[bool]) -> list[str]:
    """Figures as text, with a mark where they are modelled and not counted."""
    return [f"{text}{MARK}" if mark else text for text, mark in zip(texts, modelled, strict=True)]


def interval_column(frame: pd.DataFrame, name: str, decimals: int = 2) -> list[str]:
    """Column `name` with its bounds `name_lo` and `name_hi`: `1.05 [1.02, 1.08]`, the figure alone without bounds."""
    rows = frame[[name, f"{name}_lo", f"{name}_hi"]].itertuples(index=False)
    return [format.interval_text(point, lo, hi, decimals) for point, lo, hi in rows]
