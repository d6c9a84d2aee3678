"""Tables on a page: at most ten rows, and the whole of it one click away as CSV and as Parquet.

The data travel inside the page (a `data:` address), so that they are there wherever the page is: in the built book,
in an executed notebook, in a shared file, without a network.
"""

import base64
import io
import re
from html import escape

import pandas as pd

# An interval that goes on in the next line is read as two figures.
INTERVAL, NO_BREAK = re.compile(r"(\d) \[([-\d.,]+), ([-\d.,]+)\]"), "\\1\u00a0[\\2,\u00a0\\3]"
ROWS = 10  # that a page shows; more is data to be looked up, not a table to be read


def html(frame: pd.DataFrame, index: tuple[str, ...] = (), rows: int = ROWS) -> str:
    """The table as HTML: its first `rows` rows, the rest behind a fold, then the links to the data.

    index: the columns that name a row. All text is escaped.
    """
    shown, rest = frame.iloc[:rows], frame.iloc[rows:]
    parts = [_table(shown, index)]
    if len(rest):
        parts.append(f"<details><summary>{len(rest)} more rows</summary>{_table(rest, index)}</details>")
    return "".join(parts) + _links(frame, name_of(frame))


def _table(frame: pd.DataFrame, index: tuple[str, ...]) -> str:
    """Names of rows first. A name that is the same as above is written once, as in a printed table."""
    shown = frame[[*index, *(c for c in frame.columns if c not in index)]].astype(object)
    same = pd.Series(True, index=frame.index)
    for column in index[:-1]:
        same = same & (frame[column] == frame[column].shift())
        shown[column] = shown[column].mask(same, "")
    text = shown.to_html(index=False, border=0, classes="dataframe")
    return f'<div class="wide">{INTERVAL.sub(NO_BREAK, text)}</div>'


def _links(frame: pd.DataFrame, name: str) -> str:
    """Links that save the whole table. Columns of mixed kinds are written as text."""
    plain = frame.reset_index(drop=True)
    buffer = io.BytesIO()
    kinds = plain.apply(lambda column: column if pd.api.types.is_numeric_dtype(column) else column.astype(str))
    kinds.to_parquet(buffer, index=False)
    files = {
        "csv": ("text/csv", plain.to_csv(index=False).encode()),
        "parquet": ("application/vnd.apache.parquet", buffer.getvalue()),
    }
    links = " · ".join(
        f'<a download="{escape(name)}.{end}" href="data:{kind};base64,{base64.b64encode(content).decode()}">'
        f"{'CSV' if end == 'csv' else 'Parquet'}</a>"
        for end, (kind, content) in files.items()
    )
    rows = "1 row" if len(frame) == 1 else f"{len(frame):,} rows"
    return f'<p class="table-data">data, {rows}: {links}</p>'


def name_of(frame: pd.DataFrame) -> str:
    """A file name from a table's first columns."""
    words = "-".join(str(column) for column in frame.columns[:2]).lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-") or "table"
