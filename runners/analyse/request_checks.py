"""What is wrong with the requests of a ledger: one that cannot have been, and those that are not there."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from runners.core import progress


def say_lost(path: Path, rows: Sequence[dict], known: set[str]) -> None:
    """Say which cells count without their requests. path: of requests.parquet; known: the keys that it holds."""
    without = [row for row in rows if row["status"] == "ok" and row.get("requests") and row["key"] not in known]
    if without:
        lost = sum(row["requests"] for row in without)
        _say_once(
            f"{path.parent.name}/{path.name} lacks some {lost} requests of {len(without)} cells that are ok: the cells "
            "count, their requests are in no figure made from requests (load, latency limits)"
        )


@functools.cache
def _say_once(text: str) -> None:
    """Several chapters ask for the same requests."""
    progress.say(text)


def impossible(frame: pd.DataFrame) -> str | None:
    """What is wrong with the first impossible request: a time or count that is not a number >= 0, or times in the wrong
    order. None when all are possible.
    """
    columns = ["intended_s", "sent_s", "first_token_s", "last_token_s", "prompt_tokens", "output_tokens"]
    for column in columns:
        values = pd.to_numeric(frame[column], errors="coerce").astype(float)
        text = not pd.api.types.is_numeric_dtype(frame[column])  # numbers that were written as text
        wrong = frame[column].notna() & (text | ~(np.isfinite(values) & (values >= 0)))
        if wrong.any():
            return f"request {frame.prompt_id[wrong].iloc[0]} has {column} = {frame[column][wrong].iloc[0]!s:.40}"
    for early, late in (("sent_s", "first_token_s"), ("first_token_s", "last_token_s")):
        wrong = frame[early].astype(float) > frame[late].astype(float)
        if wrong.any():
            return f"request {frame.prompt_id[wrong].iloc[0]} has its {late} before its {early}"
    return None
