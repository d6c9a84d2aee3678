"""A profile written for this machine parses and says what to check; one that cannot be written leaves nothing."""

import pytest

from runners.commands import new_profile
from runners.core import gpus, paths
from runners.core.errors import UserError
from runners.profiles.load import load


@pytest.fixture
def profiles(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROFILES", tmp_path)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize("found", [None, [gpus.Gpu("RTX PRO 6000", 96.0, 95.0, "580.1")] * 2])
def test_a_new_profile_parses_and_says_what_to_check(profiles, monkeypatch, found):
    monkeypatch.setattr(gpus, "found", lambda: found)
    (profiles / "config.json").write_text("{}")
    new_profile.write("my-box", drafter=str(profiles))
    profile, text = load("my-box"), (profiles / "my-box.yaml").read_text()
    assert profile.hardware.gpus == len(found or []) and "# CHECK" in text
    assert profile.hardware.servers_at_once == 1
    quick, full = profile.preset("quick"), profile.preset("full")
    assert (quick.rounds, full.rounds) == ((1, 6) if found else (3, 6)), "one start decides nothing: full pays for six"
    assert all(2 <= n <= max(2, c) for c, n in full.requests.items()) and set(full.repeats.values()) == {1, 2}
    assert {c.method for c in profile.configurations.values()} == {"none", "ngram", "eagle3"}
    with pytest.raises(UserError, match="exists already"):
        new_profile.write("my-box")


@pytest.mark.parametrize("name, target, said", [("../x", None, "must hold"), ("box", "/nowhere", "no config.json")])
def test_a_profile_that_cannot_be_written_leaves_nothing(profiles, name, target, said):
    with pytest.raises(UserError, match=said):
        new_profile.write(name, target)
    assert not list(profiles.glob("*.yaml"))


def test_a_model_folder_fills_the_target_in(profiles):
    folder = profiles / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(
        '{"num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 99, "dtype": "bf16"}'
    )
    new_profile.write("box", str(folder))
    target = load("box").target
    assert (target.name, target.layers, target.hidden_size, target.vocab_size) == ("my-model", 4, 64, 99)
