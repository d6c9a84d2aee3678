"""A table for the terminal: columns side by side, without lines between them."""

import pandas as pd


def table(frame: pd.DataFrame) -> str:
    """A DataFrame of short texts, one row a line; empty for a frame without rows."""
    if frame.empty:
        return ""
    rows = [[str(name) for name in frame.columns], *frame.astype(str).to_numpy().tolist()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(f"{text:{w}}" for text, w in zip(row, widths, strict=True)).rstrip() for row in rows)
