"""Cells of shorter answers, where the same point was measured with longer ones too: they are another question.

A longer answer repeats itself more and has a longer context, so accept length and step cost differ. A folder that
holds campaigns of both lengths (`quick`, then `full`) is answered by the longer ones, point by point.
"""

from collections.abc import Mapping

import pandas as pd

Point = tuple[str, str, int]  # configuration, workload, concurrency


def superseded(cells: pd.DataFrame, base_of: Mapping[str, str | None]) -> pd.Series:
    """One bool a row of results.cells: was its point measured with longer answers too, beside the same base?

    base_of: configuration -> what it is compared with. A base keeps the cells that others are compared with. Void cells
    are never among them: they enter no average anyway.
    """
    tokens = pd.to_numeric(cells["output_tokens_per_request"], errors="coerce").fillna(0)
    good = cells["status"] == "ok"
    if tokens[good].nunique() < 2:
        return pd.Series(False, index=cells.index)
    campaigns = cells["campaign"].where(cells["campaign"].notna(), "")
    points = list(zip(cells["configuration"], cells["workload"], cells["concurrency"], strict=True))
    held: dict[Point, dict[str, float]] = {}  # point -> campaign -> tokens of an answer
    for point, campaign, length, ok in zip(points, campaigns, tokens, good, strict=True):
        if ok:
            held.setdefault(point, {})[campaign] = length
    kept: set[tuple[Point, str]] = set()
    for point, own in held.items():
        name, workload, concurrency = point
        base = (base_of.get(name) or name, workload, concurrency)
        beside = {c: n for c, n in own.items() if c in held.get(base, {})} or own
        longest = [c for c, n in beside.items() if n == max(beside.values())]
        kept |= {(point, c) for c in longest} | {(base, c) for c in longest if c in held.get(base, {})}
    dropped = [ok and (p, c) not in kept for p, c, ok in zip(points, campaigns, good, strict=True)]
    return pd.Series(dropped, index=cells.index, dtype=bool)
