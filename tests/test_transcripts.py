"""The guide's transcripts say what the commands print: each is typed again; measured figures are compared as masked."""

from contextlib import ExitStack

import pytest
import transcripts
from transcripts import TRANSCRIPTS, Box, kept, masked

from runners.measure import gates

AGAIN = "if the new text is right: PYTHONPATH=. .venv/bin/python tests/support/transcripts.py NAME"


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    with ExitStack() as running:
        yield Box(tmp_path_factory.mktemp("guide"), running)


@pytest.mark.parametrize("name", [name for name, one in TRANSCRIPTS.items() if not one.timed])
def test_a_command_prints_what_the_guide_shows(box, name):
    assert box.transcript(name) == kept(name), AGAIN


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, one in TRANSCRIPTS.items() if one.timed])
def test_a_command_that_measures_prints_the_same_words(box, name, monkeypatch):
    monkeypatch.setattr(gates, "HEADROOM", 1)  # on a busy machine a short window is mostly our own polls
    assert masked(box.transcript(name)) == masked(kept(name)), AGAIN


def test_figures_and_what_depends_on_chance_are_masked():
    text = "C=1 · chat: pays: 1.57 [1.50, 1.60] (98% interval over 8 blocks)\n  left out: a void cell\nabout 1 minute"
    again = "C=4 · chat: pays: 1.6 [1.2, 2,000.1] (9% interval over 1 block)\nabout 12 minutes"
    assert masked(text) == masked(again) != masked(text.replace("pays", "does not pay"))


def test_the_files_in_the_folder_are_those_that_are_made():
    assert {path.stem for path in transcripts.FOLDER.glob("*.txt")} == set(TRANSCRIPTS)
