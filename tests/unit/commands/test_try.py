"""`try`: from a model's folder to a verdict in one command, by a profile that other commands then use."""

import sys

import pytest
import tiny_models
import toy_engine

from runners.__main__ import main, parse
from runners.commands import new_profile, try_drafter
from runners.commands.preflight import configuration
from runners.commands.profile_plan import Wanted
from runners.core import paths
from runners.engines import environments
from runners.measure import campaign_record, gates, machine_state
from runners.measure.ledger import Ledger
from runners.profiles.load import load


@pytest.fixture
def box(tmp_path, monkeypatch):
    """A machine whose only engine is the stand-in; profiles go to a folder of their own."""
    monkeypatch.setenv("SPECVERDICT_PLUGINS", str(toy_engine.write(tmp_path / "plugins")))
    monkeypatch.setattr(paths, "LOCAL_PROFILES", tmp_path / "profiles")

    def version(python, kind):
        return "1" if kind == "toy" else None

    monkeypatch.setattr(environments, "installed_version", version)
    monkeypatch.setattr(configuration, "installed_version", version)
    monkeypatch.setattr(environments, "ready", lambda name: False)
    tiny_models.folder(tmp_path / "model")
    return tmp_path


def tried(box, *words):
    common = ["--target", str(box / "model"), "--python", sys.executable, "--engine", "toy"]
    common += ["--runs", str(box / "runs")]
    return main(["try", *common, *words])


@pytest.mark.slow  # starts servers
def test_from_a_folder_to_a_verdict(box, monkeypatch, capsys):
    monkeypatch.setattr(gates, "HEADROOM", 1)  # a cell of a second is mostly our own polls
    monkeypatch.setattr(machine_state.MachineState, "cell", lambda *_: None)  # a test machine is never quiet
    assert tried(box, "--method", "ngram", "--k", "1,3", "-C", "1", "--minutes", "1") == 0
    said = capsys.readouterr().out
    (place,) = (box / "profiles").glob("try-model-*.yaml")
    name = place.stem
    assert f"profile {name}" in said and "pre-flight: 0 blockers" in said and "Campaign `" in said
    assert "For chat, one request at a time" in said and "TTFT ms" in said
    assert f"specverdict report --profile {name}" in said
    profile = load(name)
    assert list(profile.configurations) == ["toy-base", "toy-ngram-k1", "toy-ngram-k3"]
    (done,) = campaign_record.load(box / "runs" / name)
    assert done.covers(list(profile.configurations)), "a report of it measures nothing again"
    rows = Ledger(box / "runs" / name / "toy-ngram-k3").rows()
    assert rows and all(row["status"] == "ok" for row in rows), rows


def test_what_the_preflight_finds_ends_it_before_anything_starts(box, capsys):
    (box / "model" / "model.safetensors").write_bytes(b"")
    assert tried(box) == 1
    said = capsys.readouterr().out
    assert "blocker  model.safetensors is not a safetensors file" in said and "pre-flight: 1 blockers" in said
    assert not (box / "runs").exists()


def test_own_prompts_are_asked_and_make_the_context_long_enough(box, monkeypatch):
    asked = []
    monkeypatch.setattr(try_drafter, "run", lambda plan, runs, minutes: asked.append(plan) or 0)
    file = box / "tickets.txt"
    file.write_text("Why is the sky blue?\n" + "word " * 1500 + "\n")
    assert tried(box, "--prompts", str(file), "--prompts", "chat") == 0
    (plan,) = asked
    profile = new_profile.save(try_drafter.named(plan), box / "profiles" / "x.yaml")
    assert profile.workload.prompt_sets == ["tickets", "chat"] and profile.workload.prompt_files == {
        "tickets": str(file)
    }
    assert 2500 < profile.target.context_length <= 4096
    assert tried(box, "--prompts", str(box / "nowhere.txt")) == 2


def test_another_question_is_another_profile_and_more_time_is_not(box):
    def name(**wanted):
        plan = new_profile.look("try", [str(box / "model")], engines=["toy"], wanted=Wanted(**wanted))
        return try_drafter.named(plan).name

    assert name(minutes=5) == name(minutes=60) != name(ks=[2], minutes=5)
    assert name(minutes=5).startswith("try-model-")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "nothing"], "--engine nothing must be one of"),
        (["--drafter", "/nowhere"], "the drafter /nowhere must be a drafter's folder or a GGUF file"),
        (["--method", "eagle3"], "`method: eagle3` needs a `drafter`"),
    ],
)
def test_bad_input_is_one_sentence(box, capsys, words, said):
    assert tried(box, *words) == 2
    found = capsys.readouterr().err.strip()
    assert said in found and "\n" not in found


@pytest.mark.parametrize("words", [["--k", "0"], ["--k", "one"], ["-C", ""], ["--minutes", "0"]])
def test_numbers_are_checked(words):
    with pytest.raises(SystemExit) as stopped:
        parse("try", ["--target", "x", *words])
    assert stopped.value.code == 2
