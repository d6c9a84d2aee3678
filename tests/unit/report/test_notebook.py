"""What every notebook does alike: tables, an example row, and figures for the book."""

import json

import nbformat
import pandas as pd
import pytest

from runners.core import paths
from runners.core.format import NOT_MEASURED
from runners.report import book, notebook

SOURCES = {name: paths.ROOT / "notebooks" / f"{name}.ipynb" for name in (*book.ANALYSES, "run_configuration")}


def code_cells(name):
    return [c for c in nbformat.read(SOURCES[name], 4).cells if c.cell_type == "code"]


def shown(cells):
    return [c for c in cells if "remove-input" not in c.metadata.get("tags", [])]


@pytest.fixture
def displayed(monkeypatch):
    found = []
    monkeypatch.setattr(notebook, "display", found.append)
    return found


def test_an_empty_table_is_a_sentence(displayed):
    notebook.show_table(pd.DataFrame(columns=["a", "b"]), "a")
    notebook.show_table(pd.DataFrame({"a": [1], "b": [2]}), "a")
    notebook.show_table(pd.DataFrame({"a": [1], "b": [2]}, index=[7]))
    assert displayed[0].data == "Not measured here."
    assert all(table.data.count("<tr") == 2 and "data, 1 row:" in table.data for table in displayed[1:])


def test_an_example_is_the_first_row_or_said_to_be_missing(capsys):
    assert notebook.first(pd.DataFrame({"a": [3, 4]})).a == 3 and capsys.readouterr().out == ""
    assert notebook.first(pd.DataFrame({"a": []})) is None and capsys.readouterr().out == f"{NOT_MEASURED}\n"


def test_only_what_pages_ask_for_is_glued(monkeypatch):
    glued = {}
    monkeypatch.setattr(notebook, "glue", lambda name, value, display: glued.update({name: value}))
    notebook.glue_all({"claims_sentence": "three", "asked by nobody": "four"}, "claims")
    assert glued == {"claims_sentence": "three"}


@pytest.mark.parametrize("name", book.ANALYSES)
def test_a_chapter_shows_one_calculation_that_ends_in_an_assertion(name):
    (cell,) = shown(code_cells(name))
    lines = cell.source.splitlines()
    assert lines[-1].strip().startswith("assert ") and len(lines) <= 8


def test_a_run_page_shows_no_code():
    assert shown(code_cells("run_configuration")) == []


@pytest.mark.parametrize("name", SOURCES)
def test_a_notebook_sets_up_in_one_call_and_glues_if_pages_ask(name):
    source = "\n".join(c.source for c in code_cells(name))
    assert source.count("notebook.set_up()") == 1 and "set_option" not in source
    assert source.count(f'"{name}")') == source.count("glue_all(") == bool(book.asked_names(name))
    assert json.loads(SOURCES[name].read_text())["metadata"]["kernelspec"]["name"] == "python3"
