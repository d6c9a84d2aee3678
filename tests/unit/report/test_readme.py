"""The README says what the published verdict says."""

import pytest

from runners.core import paths
from runners.profiles import load
from runners.report import readme


@pytest.mark.slow  # checks every claim on the published cells
def test_the_readmes_table_is_the_published_verdicts():
    text = readme.README.read_text()
    new = readme.section(load.load("lab-cpu"), paths.PUBLISHED_RUNS)
    assert readme.with_section(text, new) == text, "run `make publish` after measuring"
    assert readme.PICTURE.is_file()
