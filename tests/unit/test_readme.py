"""The README says what the published verdict says."""

from runners import paths, profile, readme


def test_the_readmes_table_is_the_published_verdicts():
    text = readme.README.read_text()
    new = readme.section(profile.load("lab-cpu"), paths.PUBLISHED_RUNS)
    assert readme.with_section(text, new) == text, "run `make publish` after measuring"
    assert readme.PICTURE.is_file()
