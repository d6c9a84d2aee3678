"""A small table as Markdown."""

import pandas as pd


def pipe_table(frame: pd.DataFrame) -> str:
    """A DataFrame of short texts as a Markdown table."""
    lines = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
