"""Notebooks: sources carry no outputs; executed analyses give the same again on the committed data (nbval)."""

import re
import subprocess
import sys

import nbformat
import pytest

from runners.core import paths
from runners.report.book import ANALYSES

pytestmark = pytest.mark.slow

PUBLISHED = paths.PUBLISHED_RUNS / "lab-cpu" / "notebooks"


def code_cells(path):
    return [c for c in nbformat.read(path, 4).cells if c.cell_type == "code"]


@pytest.mark.parametrize("path", sorted((paths.ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.name)
def test_sources_carry_no_outputs(path):
    for cell in code_cells(path):
        assert not cell.outputs and cell.execution_count is None
    tags = [tag for cell in code_cells(path) for tag in cell.metadata.get("tags", [])]
    assert tags.count("parameters") == 1


@pytest.mark.parametrize("name", ANALYSES)
def test_an_analysis_gives_the_same_again(name):
    path = PUBLISHED / f"{name}.ipynb"
    cells = [c for c in code_cells(path) if c.source.strip()]
    # nbval runs a cell without a count and compares nothing: such a notebook would pass unread.
    assert all(c.execution_count for c in cells), "a cell of the published notebook was never executed"
    assert sum(bool(c.outputs) for c in cells) >= 3
    options = ["--nbval", "--nbval-sanitize-with", str(paths.ROOT / "tests" / "nbval_sanitize.cfg")]
    where = [str(path), "-p", "no:cacheprovider", "-q", f"--rootdir={paths.ROOT}"]
    done = subprocess.run([sys.executable, "-m", "pytest", *options, *where], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) == len(cells)


def test_nbval_really_compares(tmp_path):
    """A changed output in a copy must fail: the proof that the test above compares anything."""
    notebook = nbformat.read(PUBLISHED / "verdict.ipynb", 4)
    changed = next(o for c in notebook.cells for o in c.get("outputs", []) if "text/plain" in o.get("data", {}))
    changed["data"]["text/plain"] = "another thing"
    copy = tmp_path / "verdict.ipynb"
    nbformat.write(notebook, copy)
    options = ["--nbval", "--nbval-sanitize-with", str(paths.ROOT / "tests" / "nbval_sanitize.cfg")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(copy), "-q", "-p", "no:cacheprovider"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout[-2000:]
