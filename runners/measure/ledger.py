"""The ledger: one row a cell in cells.jsonl, one row a request in requests.parquet, per configuration.

Raw counts are stored and rates derived on read. Appends are atomic: the file is written anew beside
its place, synced and renamed, so that an interruption leaves either the old ledger or the new one.
"""

import dataclasses
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from runners.core import files
from runners.core.errors import UserError
from runners.core.files import json_lines, write_atomic
from runners.measure.client import Result

SCHEMA_VERSION = 1
REQUEST_COLUMNS = [
    "key",
    "attempt",
    *("prompt_id", "intended_s", "sent_s", "first_token_s", "last_token_s"),
    *("prompt_tokens", "output_tokens", "count_source", "finish_reason", "error", "text"),
]


def ledger_lines(path: Path, whole: bool = False) -> list[dict]:
    """The rows of one cells.jsonl; UserError names the file and the line that is no cell of this schema.

    whole: every field that an analysis relies on is looked at too.
    """
    rows = []
    for where, row in json_lines(path):
        if not isinstance(row.get("key"), str):
            words = "`key` is no text" if "key" in row else "it has no key"
            raise UserError(f"{where} is no cell ({words}); remove that line and run the report again.")
        if row.get("schema_version") != SCHEMA_VERSION:
            raise UserError(
                f"{where} has schema_version {row.get('schema_version')!r}, not {SCHEMA_VERSION}; "
                "use the release that wrote it or measure again."
            )
        fault = _fault(row) if whole else None
        if fault:
            raise UserError(f"{where} is no cell ({fault}); remove that line and run the report again.")
        rows.append(row)
    return rows


# What a cell counts and times: a number from 0 wherever it is there at all.
COUNTS = (
    *("requests", "output_tokens", "seconds", "output_tokens_per_second", "stream_tokens_per_second_p50"),
    *("ttft_ms_p50", "tpot_ms_p50", "context_tokens", "steps", "drafted", "accepted", "k"),
    "machine_gflops",
)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _fault(row: dict) -> str | None:
    """What keeps a row from being a cell: the fields that everything else relies on."""
    for name in ("configuration", "engine", "method", "workload", "status"):
        if not isinstance(row.get(name), str):
            return f"`{name}` is no text" if name in row else f"it has no {name}"
    for name, least in (("concurrency", 1), ("repeat", 0)):
        value = row.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            return f"`{name}` is no whole number from {least}"
    for name in COUNTS:
        value = row.get(name)
        if value is not None and not _is_amount(value):
            return f"`{name}` is no number from 0"
    drafted, accepted = row.get("drafted"), row.get("accepted")
    if drafted is not None and accepted is not None and accepted > drafted:
        return f"`accepted` {accepted} is more than `drafted` {drafted}"
    positions = row.get("accepted_per_position")
    if positions is not None and not (isinstance(positions, list) and all(map(_is_amount, positions))):
        return "`accepted_per_position` is no list of counts"
    reasons = row.get("reasons")
    if reasons is not None and not (isinstance(reasons, list) and all(isinstance(r, str) for r in reasons)):
        return "`reasons` is no list of texts"
    return None


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


class Ledger:
    """The folder of one configuration's results."""

    def __init__(self, folder: Path):
        self.folder = folder

    @property
    def cells_path(self) -> Path:
        return self.folder / "cells.jsonl"

    def rows(self) -> list[dict[str, Any]]:
        """Every row, attempts and void ones included. UserError names file and line of a broken one."""
        return ledger_lines(self.cells_path) if self.cells_path.is_file() else []

    def finished(self) -> set[str]:
        """Keys that need no measuring: those with an `ok` row. A void cell is tried again."""
        return {row["key"] for row in self.rows() if row.get("status") == "ok"}

    def attempts(self, key: str) -> int:
        return sum(row["key"] == key for row in self.rows())

    def set_aside(self, current: set[str]) -> int:
        """Move rows of other keys (flags, prompts or machine have changed since) to cells.old.jsonl.

        They describe another configuration than the one under this name now, and must not be averaged with it.
        """
        rows = self.rows()
        old = [row for row in rows if row["key"] not in current]
        if old:
            path = self.folder / "cells.old.jsonl"
            before = path.read_bytes() if path.is_file() else b""
            write_atomic(path, before + _lines(old))
            write_atomic(self.cells_path, _lines(row for row in rows if row["key"] in current))
        return len(old)

    def append(self, row: dict[str, Any], results: list[Result]) -> None:
        """Requests first, then the cell: a cell's row never stands without its requests."""
        self._append_requests(row["key"], row["attempt"], results)
        lines = self.cells_path.read_bytes() if self.cells_path.is_file() else b""
        write_atomic(self.cells_path, lines + _lines([{"schema_version": SCHEMA_VERSION} | row]))

    def _append_requests(self, key: str, attempt: int, results: list[Result]) -> None:
        path = self.folder / "requests.parquet"
        new = pd.DataFrame([{"key": key, "attempt": attempt} | dataclasses.asdict(r) for r in results])
        new = new.reindex(columns=REQUEST_COLUMNS).astype({"prompt_tokens": "Int64", "output_tokens": "Int64"})
        if path.is_file():
            old = pd.read_parquet(path)
            # The same attempt may be there already, from a run that was stopped between the two files.
            old = old[~((old["key"] == key) & (old["attempt"] == attempt))]
            new = pd.concat([old, new], ignore_index=True)
        write_atomic(path, new.to_parquet(None, index=False, compression="zstd"))

    def requests(self) -> pd.DataFrame:
        path = self.folder / "requests.parquet"
        return pd.read_parquet(path) if path.is_file() else pd.DataFrame(columns=REQUEST_COLUMNS)

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
