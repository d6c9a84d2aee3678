"""The case's figures as reported: one run each, no intervals, settings not known to match.

They are never mixed with what was measured here.
"""

from pathlib import Path

import pandas as pd

from runners.core import paths
from runners.core.errors import UserError

COLUMNS = ["configuration", "engine", "single_stream_tok_s", "c128_tok_s", "accept_rate_as_printed"]
COLUMNS += ["accept_length", "num_draft_tokens", "notes"]
NUMBERS = COLUMNS[2:7]


def _share(value) -> float | None:
    """A share of 1 from 0.42, "42%" or "about 42%"; None without a number."""
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
    """Accept lengths that others publish for drafters of the case's target: public_accept_lengths.csv, a row each."""
    lengths = pd.read_csv(paths.DATA / "reported" / "public_accept_lengths.csv")
    return lengths[lengths["target"] == "Kimi-K2.5"]


def base_row(frame: pd.DataFrame, engine: str) -> pd.Series | None:
    """The reported row of that engine without a drafter."""
    rows = frame[(frame.engine == engine) & frame.accept_length.isna()]
    return rows.iloc[0] if len(rows) else None


def step_costs(case: pd.DataFrame) -> pd.DataFrame:
    """step_cost.py's arithmetic on the reported table, at C = 1 and 128: one row a configuration and concurrency.

    Columns: configuration, concurrency, accept_length (tokens per step), speed_up (over the engine's base), step_cost
    (r = AL / speed-up), ceiling (K + 1), like_for_like, note. Points without intervals. like_for_like is False at
    C = 128 under a cap on running requests: the two sides then serve different batches.
    """
    rows = []
    for r in case[case.accept_length.notna()].itertuples():
        base = base_row(case, r.engine)
        if base is None:
            continue
        for concurrency, column in ((1, "single_stream_tok_s"), (128, "c128_tok_s")):
            gain = getattr(r, column) / base[column]
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
    columns = ["configuration", "concurrency", "accept_length", "speed_up", "step_cost", "ceiling"]
    return pd.DataFrame(rows, columns=[*columns, "like_for_like", "note"])
