"""Notebooks in one kernel: each starts without the names of the one before; a failure does not stop the others."""

import nbformat
import pytest

from runners.core import paths
from runners.core.errors import UserError
from runners.report import execute
from runners.report.execute import Page

pytestmark = pytest.mark.slow  # it starts a kernel

SOURCES = {
    "first": "kept = 1",
    "bad": "from runners.core.errors import UserError\nraise UserError('the ledger is damaged')",
    "last": "import os\nprint('kept' in globals(), word, os.getpid())",
}


def test_pages_share_a_kernel_and_no_names(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    for name, source in SOURCES.items():
        cells = [nbformat.v4.new_code_cell("word = ''", metadata={"tags": ["parameters"]})]
        notebook = nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_code_cell(source)])
        notebook.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "Python 3"}
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    with pytest.raises(UserError, match=r"page bad: the ledger is damaged"):
        pages = [Page("first", "first", {}), Page("bad", "bad", {})]
        execute.execute([*pages, Page("last", "a", {"word": "given"}), Page("last", "b", {})], tmp_path / "out")
    texts = [nbformat.read(tmp_path / "out" / f"{n}.ipynb", 4).cells[-1].outputs[0].text for n in ("a", "b")]
    assert texts[0].startswith("False given ") and texts[1].startswith("False  ")
    assert texts[0].split()[-1] == texts[1].split()[-1]  # one process
