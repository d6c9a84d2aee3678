"""Drafters as files: where they are, what determines them, and what is refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from runners.core import checkpoint, errors, paths
from runners.drafter import replay
from runners.measure import cell_key
from runners.profiles import load
from runners.profiles.points import Point
from runners.serve import drafter_files

LAB = load.load("lab-cpu")


def with_drafters(**more):
    content = LAB.model_dump()
    content["drafters"] |= more
    return type(LAB).model_validate(content)


@pytest.fixture
def published(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    save_file({"fc.weight": np.zeros((2, 6), np.float16)}, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    return folder


def test_a_drafters_digest_follows_its_weights_its_config_and_its_fault(published):
    p = with_drafters(
        own={"path": str(published)},
        broken={"made": "derived", "source": "own", "fault": "random-head"},
        other={"made": "derived", "source": "own", "fault": "wrong-map"},
    )
    first = {name: drafter_files.digest(p, name) for name in ("own", "broken", "other")}
    assert len(set(first.values())) == 3
    (published / "config.json").write_text('{"rope_theta": 1}')
    second = {name: drafter_files.digest(p, name) for name in first}
    assert all(first[name] != second[name] for name in first)
    folder, gguf = drafter_files.planned(p, "broken")
    assert second["broken"] in str(folder) and gguf.name == "drafter.gguf"


def test_a_derived_drafters_digest_follows_its_own_fault_and_no_other(tmp_path, monkeypatch):
    original = (paths.SCRIPTS / "derive_drafter.py").read_text()
    monkeypatch.setattr(drafter_files, "SCRIPTS", tmp_path)

    def recipe(text, fault):
        (tmp_path / "derive_drafter.py").write_text(text)
        return drafter_files._recipe(fault)

    faults = ("aux-order", "boundary+1", "wrong-map", "noise-0.4")
    assert len({tuple(recipe(original, f)) for f in faults}) == len(faults)
    for old, new, moved in (
        ("np.roll(t", "np.roll(-t", {"wrong-map"}),
        ("[i + shift for", "[i - shift for", {"boundary+1"}),  # what an entry calls
        ('["eagle_aux_hidden_state_layer_ids"]\n', '["ids"]\n', {"aux-order", "boundary+1"}),  # what both call
        ("noisy(0.2)", "noisy(0.3)", set()),
        ("save_file(tensors", "save_file(dict(tensors)", set(faults)),
    ):
        assert old in original
        assert {f for f in faults if recipe(original, f) != recipe(original.replace(old, new), f)} == moved, old


def test_new_weights_under_the_same_path_are_another_cell(published):
    content = LAB.model_dump()
    content["drafters"]["own"] = {"path": str(published)}
    content["configurations"]["vllm-own"] = content["configurations"]["vllm-eagle3-untrained"] | {"drafter": "own"}
    p = type(LAB).model_validate(content)
    point = Point("chat", 1, 0, 0, 4)
    before = cell_key.settings(p, "vllm-own", point, "quick")
    (published / "config.json").write_text('{"rope_theta": 1}')
    assert cell_key.settings(p, "vllm-own", point, "quick") != before


def test_a_drafter_that_is_not_here_is_absent_and_named(tmp_path):
    p = with_drafters(own={"path": str(tmp_path / "nowhere")})
    assert drafter_files.digest(p, "own") == "absent"
    with pytest.raises(errors.UserError, match="drafter own is not at .*nowhere"):
        drafter_files.ensure(p, "own", tmp_path / "t.gguf", tmp_path, print)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"a": {"made": "derived", "source": "untrained"}}, "`source` and `fault` are needed with"),
        ({"a": {"made": "derived", "source": "nobody", "fault": "int4"}}, "is none of"),
        (
            {
                "a": {"made": "derived", "source": "b", "fault": "int4"},
                "b": {"made": "derived", "source": "a", "fault": "int4"},
            },
            "derived from itself",
        ),
    ],
)
def test_a_derivation_that_leads_nowhere_is_refused(more, words):
    with pytest.raises(ValueError, match=words):
        with_drafters(**more)


def test_boundaries_are_the_configs_or_the_engines_default(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 4, 5]}}))
    assert checkpoint.boundaries_of(tmp_path, 30) == [3, 4, 5]
    (tmp_path / "config.json").write_text("{}")
    assert checkpoint.boundaries_of(tmp_path, 61) == [2, 30, 58]


def test_replayed_counts_are_pooled_as_a_ratio_of_sums():
    rows = [
        {"steps": 10, "drafted": 30, "accepted": 3, "accepted_per_position": [2, 1, 0]},
        {"steps": 30, "drafted": 90, "accepted": 37, "accepted_per_position": [20, 10, 7]},
    ]
    found = replay.pooled(rows, 3)
    assert found["accept_length"] == 2.0 and found["accepted_per_position"] == [22, 11, 7]
    assert replay.pooled([], 3)["accept_length"] is None
