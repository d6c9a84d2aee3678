"""The ledger: one row a cell in cells.jsonl, one row a request in requests.parquet, per configuration.

Raw counts are stored and rates derived on read. Writes are atomic (files.write_atomic): an interruption leaves either
the old ledger or the new one.
"""

import dataclasses
import io
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from runners.core import files, secrets
from runners.core.errors import UserError
from runners.core.files import json_lines, write_atomic
from runners.core.one_line import one_line
from runners.measure import cell_row
from runners.measure.cell_row import SCHEMA_VERSION, CellRow
from runners.measure.client import Result

REQUEST_COLUMNS = ["key", "attempt", *(field.name for field in dataclasses.fields(Result))]
_TYPES = {
    **dict.fromkeys(["attempt", "prompt_tokens", "output_tokens"], pa.int64()),
    **dict.fromkeys(["intended_s", "sent_s", "first_token_s", "last_token_s"], pa.float64()),
    # Stamps to some microseconds, in half of the room.
    "token_s": pa.list_(pa.float32()),
    "token_counts": pa.list_(pa.int32()),
}
# Without these a row is no request; the others came with later releases, or nothing rests on them.
NEEDED_COLUMNS = (
    *("key", "attempt", "prompt_id", "sent_s", "first_token_s", "last_token_s", "output_tokens", "error", "text"),
)
REQUEST_SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in REQUEST_COLUMNS])


def ledger_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of one cells.jsonl, with every field that stands there (cell_row.py names the known ones).

    Raises UserError that names the file and the line that is not JSON, of another schema version or not a cell.
    """
    rows = []
    for where, row in json_lines(path):
        # Before the fields: those of another version may be named otherwise.
        if row.get("schema_version") != SCHEMA_VERSION:
            raise UserError(
                f"{where} has schema_version {row.get('schema_version')!r}, not {SCHEMA_VERSION}; "
                "use the release that wrote it or measure again."
            )
        fault = cell_row.fault(row)
        if fault:
            raise UserError(f"{where} is not a valid cell: {fault}; remove that line and run the report again.")
        rows.append(row)
    return rows


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


def _masked(row: dict[str, Any]) -> dict[str, Any]:
    """A request's row without secrets: a server may repeat one in its answer. (Parquet is masked by its values.)"""
    return row | {name: secrets.masked(row[name]) for name in ("text", "error", "finish_reason") if row[name]}


class Ledger:
    """The folder of one configuration's results: <runs>/<profile>/<configuration>/."""

    def __init__(self, folder: Path):
        self.folder = folder

    @property
    def cells_path(self) -> Path:
        return self.folder / "cells.jsonl"

    @property
    def requests_path(self) -> Path:
        return self.folder / "requests.parquet"

    def requests_fault(self) -> str | None:
        """What keeps requests.parquet from being read, in words; None for a good one, and where there is none."""
        return self._read_requests()[1] if self.requests_path.exists() else None

    def _read_requests(self) -> tuple[pa.Table | None, str | None]:
        """(the table, None), or (None, what is wrong with the file)."""
        if not self.requests_path.is_file():
            return None, "is a folder and no file"
        try:
            table = pq.read_table(self.requests_path)
        except (pa.ArrowException, OSError, ValueError) as error:
            return None, f"cannot be read ({one_line(str(error), 80)})"
        missing = [name for name in NEEDED_COLUMNS if name not in table.column_names]
        return (None, f"lacks the column `{missing[0]}`") if missing else (table, None)

    def _table(self) -> pa.Table:
        """All of requests.parquet. UserError where it was torn by a crash or a full disk, or is of another kind."""
        table, found = self._read_requests()
        if found is not None:
            raise UserError(
                f"{self.folder.name}/{self.requests_path.name} {found}; restore it from a copy, or run "
                f"`make report PROFILE={self.folder.parent.name}`: this configuration is then measured again."
            )
        return table

    def set_aside_damaged(self) -> None:
        """Move an unreadable requests.parquet, and the rows of the cells that it belonged to, out of the way."""
        rows = self.rows()
        path = self.folder / "cells.old.jsonl"
        before = path.read_bytes() if path.is_file() else b""
        write_atomic(path, before + _lines(rows))
        write_atomic(self.cells_path, b"")
        aside = self.folder / f"requests.damaged-{time.time_ns()}"
        self.requests_path.rename(aside)

    def rows(self) -> list[dict[str, Any]]:
        """Every row, attempts and void ones included. Raises UserError with file and line of an invalid one."""
        return ledger_lines(self.cells_path) if self.cells_path.is_file() else []

    def finished(self) -> set[str]:
        """Keys of cells with an `ok` row: they are never measured again. A void cell is."""
        # A cell may have void attempts beside its good one: they stay in the file, and out of every average.
        return {row["key"] for row in self.rows() if row["status"] == "ok"}

    def attempts(self, key: str) -> int:
        """How often this cell was measured so far."""
        return sum(row["key"] == key for row in self.rows())

    def set_aside(self, settings: set[str]) -> int:
        """Move rows of other settings (flags, prompts or machine have changed since, or the row is of an earlier
        design) to cells.old.jsonl; returns how many.

        They describe another configuration than the one under this name now, and must not be averaged with it.
        """
        rows = self.rows()
        old = [row for row in rows if row.get("settings") not in settings]
        if old:
            path = self.folder / "cells.old.jsonl"
            before = path.read_bytes() if path.is_file() else b""
            write_atomic(path, before + _lines(old))
            write_atomic(self.cells_path, _lines(row for row in rows if row.get("settings") in settings))
        return len(old)

    def append(self, row: CellRow, results: list[Result]) -> None:
        """Requests first, then the cell: a cell's row never stands without its requests."""
        self._append_requests(row.key, row.attempt, results)
        lines = self.cells_path.read_bytes() if self.cells_path.is_file() else b""
        write_atomic(self.cells_path, lines + _lines([row.as_json()]))

    def _append_requests(self, key: str, attempt: int, results: list[Result]) -> None:
        path = self.requests_path
        rows = [{"key": key, "attempt": attempt} | _masked(dataclasses.asdict(r)) for r in results]
        new = pa.Table.from_pylist(rows, schema=REQUEST_SCHEMA)
        if path.exists():
            old = self._table()
            # The same attempt may be there already, from a run that was stopped between the two files.
            same = pc.and_(pc.equal(old["key"], key), pc.equal(old["attempt"], attempt))
            # Rows of an earlier release lack the newer columns: they are null there.
            new = pa.concat_tables([old.filter(pc.invert(same)), new], promote_options="permissive")
        out = io.BytesIO()
        pq.write_table(new, out, compression="zstd")
        write_atomic(path, out.getvalue())

    def requests(self) -> pd.DataFrame:
        """Every request of every attempt, columns REQUEST_COLUMNS; times in seconds from the start of its cell.

        Raises UserError for a file that cannot be read.
        """
        path = self.requests_path
        if not path.exists():
            return pd.DataFrame(columns=REQUEST_COLUMNS)
        return self._table().to_pandas()

    def write_json(self, name: str, content: Any) -> None:
        write_atomic(self.folder / name, (json.dumps(content, indent=1, default=str) + "\n").encode())

    def starts(self) -> list[dict[str, Any]]:
        """Each start of the server: started_at, ready_seconds and phases (name, start_s, end_s)."""
        path = self.folder / "timeline.json"
        advice = "delete it: only the times of earlier starts are lost"
        found = files.read_json(path, list, advice) if path.is_file() else []
        if not all(isinstance(s, dict) and {"ready_seconds", "phases"} <= set(s) for s in found):
            raise UserError(f"{path.parent.name}/{path.name} holds something else than starts; {advice}.")
        return found
