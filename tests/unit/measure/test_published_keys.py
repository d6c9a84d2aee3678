"""Every published cell still has today's settings: a change of code sets no measurement aside unless it must.

Rows of the design before campaigns have no settings: they are history, and no run goes on from them.
"""

import functools
import json

import pytest

from runners.core import paths, provenance
from runners.core.errors import UserError
from runners.measure import cell_key, settings_check
from runners.measure.ledger import Ledger
from runners.profiles import load, prompts
from runners.serve import drafter_files

LEDGERS = sorted(path.parent for root in ("runs", "elsewhere") for path in (paths.DATA / root).glob("**/cells.jsonl"))


# Each is needed for many settings, and does not change meanwhile.
load_once = functools.cache(load.load)
load_prompts_once = functools.cache(prompts.load)


def rows_of(folder):
    """The rows of a ledger that a run would go on from: those with settings."""
    return [row for row in Ledger(folder).rows() if row.get("settings")]


def made_otherwise_today(profile, name, environment):
    """Is the drafter's recipe another than the one that was measured?

    A drafter that a script of ours makes is named by the digest of its recipe, in environment.json and (through the
    folder that it is made in) in the key. After a change of the recipe those weights are not what this release would
    make and measure: the old cells stay published, as what they are, and are measured again where the profile is run.
    """
    drafter = profile.configuration(name).drafter
    return drafter is not None and environment["drafter"] != drafter_files.digest(profile, drafter)


def test_there_are_published_ledgers():
    assert len(LEDGERS) > 30


@pytest.mark.parametrize("folder", LEDGERS, ids=lambda folder: str(folder.relative_to(paths.DATA)))
def test_published_cells_have_settings_of_today(folder, monkeypatch):
    try:
        profile = load_once(folder.parent.name)
    except UserError:
        pytest.skip("the profile of these runs is not shipped")
    rows = rows_of(folder)
    if not rows:
        pytest.skip("these runs are of the design before campaigns")
    environment = json.loads((folder / "environment.json").read_text())
    # As on the machine that measured them.
    monkeypatch.setattr(provenance, "machine_id", lambda: provenance.identity(environment["hardware"]))
    monkeypatch.setattr(prompts, "load", load_prompts_once)
    published = {row["settings"] for row in rows}
    known = settings_check.current(profile, folder.name) | settings_check.current_open(profile, folder.name, rows)
    lost = published - known
    if made_otherwise_today(profile, folder.name, environment):
        assert lost == published, "another drafter, but the same settings"
    else:
        assert not lost


def test_few_published_ledgers_are_of_another_recipe():
    """An exception must not become the rule: a change that sets many cells aside is noticed here."""
    old = []
    for folder in LEDGERS:
        profile, environment = load_once(folder.parent.name), json.loads((folder / "environment.json").read_text())
        if made_otherwise_today(profile, folder.name, environment):
            old.append(folder)
    assert sum(len(rows_of(folder)) for folder in old) <= 26, old


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A checkout with one script of ours in it."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    path = tmp_path / "runners" / "scripts" / "serve.py"
    path.parent.mkdir(parents=True)
    path.write_text("print('serve')\n")
    return path


def test_a_script_that_moved_keeps_its_word(script):
    before = cell_key.neutral_word(str(script))
    moved = script.parent.parent / "elsewhere" / "start.py"
    moved.parent.mkdir()
    script.rename(moved)
    assert cell_key.neutral_word(str(moved)) == before


def test_a_script_with_another_content_has_another_word(script):
    before = cell_key.neutral_word(str(script))
    script.write_text("print('serve')  # otherwise\n")
    assert cell_key.neutral_word(str(script)) != before


def test_words_that_are_no_script_of_ours_stay_as_they_are(script, tmp_path):
    outside = tmp_path / "serve.py"
    outside.write_text("")
    for word in ("--port", "4", str(outside), str(script.with_suffix(".txt")), "runners/scripts/serve.py"):
        assert cell_key.neutral_word(word) == word


def test_the_published_llamacpp_server_keeps_the_words_of_its_keys():
    (content,) = cell_key.PUBLISHED_SCRIPTS
    assert cell_key.sha256(paths.SCRIPTS / "llamacpp_server.py") == content
    assert cell_key.neutral_word(str(paths.SCRIPTS / "llamacpp_server.py")) == cell_key.PUBLISHED_SCRIPTS[content]
