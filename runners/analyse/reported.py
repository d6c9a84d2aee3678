"""The case's figures as reported: one run each, no intervals, settings not known to match. Never mixed with
ours.
"""

from pathlib import Path

import pandas as pd

from runners.core import paths
from runners.core.errors import UserError

COLUMNS = [
    "configuration",
    "engine",
    "single_stream_tok_s",
    "c128_tok_s",
    "accept_rate_as_printed",
    "accept_length",
    "num_draft_tokens",
    "notes",
]
NUMBERS = COLUMNS[2:7]


def _share(value) -> float | None:
    """0.42, "42%" and "about 42%" all mean 0.42."""
    if isinstance(value, str):
        digits = "".join(c for c in value if c.isdigit() or c == ".")
        if not digits:
            return None
        return float(digits) / 100 if "%" in value or float(digits) > 1 else float(digits)
    if value is None or pd.isna(value):
        return None
    return value / 100 if value > 1 else value


def case(path: Path | None = None) -> pd.DataFrame:
    """The reported table, one row a configuration; speeds in tokens/s, `accept_rate_as_printed` as a share.

    Raises UserError when the file is missing or lacks a column.
    """
    path = path or paths.DATA / "reported" / "case.csv"
    if not path.is_file():
        raise UserError("data/reported/case.csv is missing; restore it from the repository.")
    frame = pd.read_csv(path, comment="#")
    missing = [c for c in COLUMNS if c not in frame.columns]
    if missing:
        raise UserError(f"data/reported/case.csv lacks {', '.join(missing)}; restore it from the repository.")
    frame["accept_rate_as_printed"] = [_share(v) for v in frame.accept_rate_as_printed]
    for column in NUMBERS:
        frame[column] = pd.to_numeric(frame[column], errors="coerce")
    return frame[COLUMNS]


def published_lengths() -> pd.DataFrame:
    """Accept lengths that others state for drafters made for the case's target."""
    lengths = pd.read_csv(paths.DATA / "reported" / "public_accept_lengths.csv")
    return lengths[lengths["target"] == "Kimi-K2.5"]


def base_row(frame: pd.DataFrame, engine: str) -> pd.Series | None:
    """The reported row of that engine without a drafter."""
    rows = frame[(frame.engine == engine) & frame.accept_length.isna()]
    return rows.iloc[0] if len(rows) else None


def step_costs(case: pd.DataFrame) -> pd.DataFrame:
    """The same arithmetic on the reported table: configuration, concurrency, accept_length, speed_up,
    step_cost, note.

    One run a row and no intervals, so these are points; at C=128 a cap on running requests makes the two
    sides serve different batches, and `like_for_like` is False.
    """
    rows = []
    for r in case[case.accept_length.notna()].itertuples():
        base = case[(case.engine == r.engine) & case.accept_length.isna()]
        if base.empty:
            continue
        for concurrency, column in ((1, "single_stream_tok_s"), (128, "c128_tok_s")):
            gain = getattr(r, column) / base.iloc[0][column]
            capped = concurrency > 1 and "cap" in str(r.notes)
            rows.append(
                {
                    "configuration": r.configuration,
                    "concurrency": concurrency,
                    "accept_length": r.accept_length,
                    "speed_up": gain,
                    "step_cost": r.accept_length / gain,
                    "ceiling": r.num_draft_tokens,
                    "like_for_like": not capped,
                    "note": f"not like for like: {r.notes}" if capped else "",
                }
            )
    columns = [
        "configuration",
        "concurrency",
        "accept_length",
        "speed_up",
        "step_cost",
        "ceiling",
        "like_for_like",
        "note",
    ]
    return pd.DataFrame(rows, columns=columns)
