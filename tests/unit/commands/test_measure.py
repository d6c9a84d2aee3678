"""`measure`: its figures, its exit code, and that it does not matter which configuration is measured first."""

import json

import fake_profile
import pytest

from runners.__main__ import main
from runners.measure import campaign_record, gates
from runners.measure.ledger import Ledger

pytestmark = pytest.mark.slow  # starts servers


@pytest.fixture(autouse=True)
def no_headroom_needed(monkeypatch):
    """A cell of a second is mostly our own polls: the client's gate has a test of its own (test_gates.py)."""
    monkeypatch.setattr(gates, "HEADROOM", 1)


def measure(folder, *names, flags=None, **sections):
    content = fake_profile.content(folder, flags)
    for section, changes in sections.items():
        content[section] |= changes
    asked = [word for name in names for word in ("--configuration", name)]
    path = fake_profile.write(folder, content)
    return main(["measure", "--profile", path, "--runs", str(folder / "runs"), *asked])


def rows(folder, name):
    return Ledger(folder / "runs" / "fake" / name).rows()


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_speculative_one_may_be_measured_first(tmp_path, capsys, at_once):
    assert measure(tmp_path, "drafting", hardware={"servers_at_once": at_once}) == 0
    assert [r["status"] for r in rows(tmp_path, "drafting")] == ["ok"], "its base was measured beside it"
    said = capsys.readouterr().out
    assert said.startswith("Campaign `") and "TTFT ms" in said and "throughput / base" in said
    assert "ngram" not in said, "only what was asked for, and its base"


def test_another_configuration_is_measured_after_a_finished_campaign(tmp_path, capsys):
    assert measure(tmp_path, "drafting") == 0
    assert measure(tmp_path, "ngram") == 0
    assert [r["status"] for r in rows(tmp_path, "ngram")] == ["ok"]
    first, second = campaign_record.load(tmp_path / "runs" / "fake")
    assert first.configurations == ["base", "drafting"] and second.configurations == ["base", "ngram"]
    assert first.finished and second.finished
    before = rows(tmp_path, "base")
    assert measure(tmp_path, "drafting") == 0 and rows(tmp_path, "base") == before, "never measured again"


def test_only_void_cells_are_exit_code_1(tmp_path, capsys):
    assert measure(tmp_path, "base", flags=fake_profile.SLOW | {"stop-at": 5}) == 1
    said = capsys.readouterr()
    assert "base has no good cell in this campaign: all 1 are void, for example because" in said.err
    assert "base: 1 of 1 cells are void" in said.out and "Traceback" not in said.err
    status = json.loads((tmp_path / "runs" / "fake" / "base" / "status.json").read_text())
    assert status["status"] == "not measured here" and status["reason"].startswith("all 1 cells are void, the last one")


def test_no_time_for_a_cell_is_exit_code_1(tmp_path, capsys):
    preset = {"presets": {"quick": {"repeats": {1: 1}, "requests": {1: 2}, "minutes": 0.001}}}
    assert measure(tmp_path, "base", workload=preset) == 1
    assert "there was no time for any" in capsys.readouterr().err
