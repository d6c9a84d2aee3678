"""Staging the book: which figures pages ask for, and what is kept off a page."""

import json

import nbformat
import pytest

from runners.core import paths
from runners.core.errors import UserError
from runners.report import book

PROFILE = "lab-cpu"


def code_tags(path):
    return [c.metadata.get("tags", []) for c in nbformat.read(path, 4).cells if c.cell_type == "code"]


@pytest.fixture
def executed(tmp_path):
    """A folder of runs with an executed notebook a chapter, each with all figures that pages ask of it."""
    folder = tmp_path / PROFILE / "notebooks"
    folder.mkdir(parents=True)
    for name in book.ANALYSES:
        notebook = nbformat.read(paths.ROOT / "notebooks" / f"{name}.ipynb", 4)
        injected = nbformat.v4.new_code_cell('runs = "local"', metadata={"tags": ["injected-parameters"]})
        notebook.cells.insert(2, injected)
        for asked in sorted(book.asked_names(name)):
            output = nbformat.v4.new_output("display_data", metadata={"scrapbook": {"name": asked}})
            notebook.cells[-1].setdefault("outputs", []).append(output)
        nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder


def test_asked_names_are_those_of_one_notebook(tmp_path):
    folder = "../data/runs/p/notebooks"
    text = f"{{glue:text}}`{folder}/verdict.ipynb::one:s` and {{glue}}`{folder}/claims.ipynb::two`"
    (tmp_path / "a.md").write_text(text)
    assert book.asked_names("verdict", tmp_path) == {"one"} and book.asked_names("claims", tmp_path) == {"two"}


def test_a_staged_page_shows_its_calculation_and_no_other_code(executed, tmp_path):
    tree = book.stage(tmp_path, PROFILE, tmp_path / "build")
    for name in book.ANALYSES:
        tags = code_tags(tree / "data" / "runs" / PROFILE / "notebooks" / f"{name}.ipynb")
        assert sum("remove-input" not in own for own in tags) == 1
    assert ["injected-parameters"] in code_tags(executed / "verdict.ipynb")  # the reader's own copy stays as it was


def test_a_run_page_of_an_earlier_version_loses_its_bars(tmp_path):
    page = tmp_path / "run_x.ipynb"
    cell = nbformat.v4.new_code_cell("1", metadata={"tags": ["hide-input"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), page)
    book.hide_code(page)
    assert code_tags(page) == [["remove-input"]]


def test_a_missing_figure_is_named_with_its_page(executed, tmp_path):
    path = executed / "claims.ipynb"
    content = json.loads(path.read_text())
    content["cells"][-1]["outputs"] = []
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"book/intro.md shows 'claims_sentence'"):
        book.stage(tmp_path, PROFILE, tmp_path / "build")


def test_a_notebook_that_stopped_at_an_error_is_named(executed, tmp_path):
    path = executed / "payoff.ipynb"
    content = json.loads(path.read_text())
    content["metadata"]["papermill"] = {"exception": True}
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"payoff.ipynb stopped at an error"):
        book.stage(tmp_path, PROFILE, tmp_path / "build")
    path.unlink()
    with pytest.raises(UserError, match="holds no executed payoff notebook"):
        book.stage(tmp_path, PROFILE, tmp_path / "build")


def test_run_pages_come_in_the_profiles_order_with_their_own_titles(executed, tmp_path):
    for name in ("b", "a", "other"):
        cell = nbformat.v4.new_markdown_cell("# Run one configuration")
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), executed / f"run_{name}.ipynb")
    assert [p.stem for p in book.run_notebooks(executed, ["b", "a"])] == ["run_b", "run_a", "run_other"]
    tree = book.stage(tmp_path, PROFILE, tmp_path / "build", ["b", "a"])
    assert "# Run: b" in (tree / "data" / "runs" / PROFILE / "notebooks" / "run_b.ipynb").read_text()
    assert "run_other" in (tree / "book" / "_toc.yml").read_text()


def test_first_faults_name_no_folder_of_ours(tmp_path):
    text = f"reading\n\x1b[31m{tmp_path}/book/intro.md:3: WARNING: unknown label\x1b[0m\nmore\n"
    assert book.first_faults(text, tmp_path) == "book/intro.md:3: WARNING: unknown label"
