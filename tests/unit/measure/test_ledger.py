"""The ledger: atomic appends, resuming, broken files in one sentence."""

import errno
import json
import os

import pytest

from runners.core.errors import UserError
from runners.measure.cell_key import hash_facts
from runners.measure.cell_row import CellRow
from runners.measure.client import Result
from runners.measure.ledger import Ledger


def row(key="k", status="ok", attempt=0, **more):
    names = {"configuration": "base", "engine": "vllm", "method": "none", "workload": "chat"}
    return CellRow(**names, key=key, status=status, attempt=attempt, reasons=[], concurrency=1, repeat=0, **more)


def answered(n=2):
    return [Result(f"p{i}", 0, 0, 0.1, 0.2, 3, 4, "usage", "length", text="x") for i in range(n)]


def test_rows_come_back_and_void_cells_are_not_finished(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(row("a"), answered())
    ledger.append(row("b", "void"), answered())
    assert ledger.finished() == {"a"} and ledger.attempts("b") == 1
    assert [r["schema_version"] for r in ledger.rows()] == [1, 1]
    assert len(ledger.requests()) == 4


def test_requests_of_a_cell_that_was_stopped_are_replaced(tmp_path):
    ledger = Ledger(tmp_path)
    ledger._append_requests("a", 0, answered(1))
    ledger.append(row("a"), answered(2))
    assert len(ledger.requests()) == 2


def test_a_full_disk_keeps_what_was_there(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path)
    ledger.append(row("a"), answered())

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device.*finished cells are kept"):
        ledger.append(row("b"), answered())
    monkeypatch.undo()
    assert ledger.finished() == {"a"} and not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("line", "sentence"), [("{", "line 1 is not JSON"), ('{"key": "k", "schema_version": 9}', "schema_version 9")]
)
def test_a_broken_line_is_named(tmp_path, line, sentence):
    (tmp_path / "cells.jsonl").write_text(line + "\n")
    with pytest.raises(UserError, match=sentence):
        Ledger(tmp_path).rows()


def test_keys_do_not_depend_on_order():
    assert hash_facts({"a": 1, "b": [2]}) == hash_facts({"b": [2], "a": 1}) != hash_facts({"a": 1, "b": [3]})


def test_cells_of_other_settings_are_set_aside(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(row("a", settings="now"), answered())
    ledger.append(row("b", settings="before"), answered())
    ledger.append(row("c"), answered())  # of the design before campaigns
    ledger.append(row("d", settings="now"), answered())
    assert ledger.set_aside({"now"}) == 2 and [r["key"] for r in ledger.rows()] == ["a", "d"]
    aside = (tmp_path / "cells.old.jsonl").read_text()
    assert [json.loads(line)["key"] for line in aside.splitlines()] == ["b", "c"]
    assert ledger.set_aside({"now"}) == 0
