"""Markdown that several chapters write: a table, and text from outside without its tags."""

import html

import pandas as pd


def pipe_table(frame: pd.DataFrame) -> str:
    """A DataFrame of short texts as a Markdown table."""
    lines = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def escaped(text: str) -> str:
    """Text from outside (a reason that quotes an engine) for a Markdown sentence: no tag in it becomes HTML."""
    return html.escape(text, quote=False)
