"""Replay of folders: what it takes, why it is not done, and what the scripts are asked (they run in tests/engines)."""

import json
import types

import numpy as np
import pytest
import small_models
from safetensors.numpy import load_file

from runners.core import checkpoint
from runners.core.errors import UserError
from runners.drafter import layouts, replay_folders
from runners.engines import environments
from runners.serve import scripts

IDS = "eagle_aux_hidden_state_layer_ids"


def head(folder, config=None, tensors=None):
    return layouts.of(checkpoint.read(small_models.head(folder, config, tensors)))


def test_a_plain_head_can_be_replayed_in_either_layout(tmp_path):
    assert replay_folders.head_reason(head(tmp_path / "a"), small_models.TARGET) == ""
    other = layouts.of(checkpoint.read(small_models.speculators(tmp_path / "b")))
    assert replay_folders.head_reason(other, small_models.TARGET) == ""


@pytest.mark.parametrize(
    "config, more, words",
    [
        ({"norm_before_fc": True}, {}, "does not know norm_before_fc"),
        ({"rope_scaling": {"rope_type": "yarn"}}, {}, "the RoPE scaling yarn"),
        ({"hidden_size": 6}, {}, "a head of the target's hidden size"),
        ({"num_attention_heads": None}, {}, "config has no num_attention_heads"),
        ({IDS: [2, 15, 30]}, {}, "name a state that is no layer's input"),
        ({}, small_models.layer("layers.1.", 8), "a head of one layer"),
        ({"eagle_config": {"use_aux_hidden_state": False}}, {}, "takes several states"),
        ({}, {"midlayer.self_attn.q_a_proj.weight": small_models.numbers(4, 16)}, "no MLA"),
        ({}, {"midlayer.self_attn.q_norm.weight": small_models.numbers(4)}, "norms of queries"),
        ({}, {"fc.weight_packed": np.zeros((8, 3), np.int32)}, "weights of I32"),
    ],
)
def test_a_head_that_replay_does_not_know_is_said(tmp_path, config, more, words):
    found = head(tmp_path, config, small_models.head_tensors() | more)
    assert words in replay_folders.head_reason(found, small_models.TARGET)


def test_another_method_has_no_chains_to_replay(tmp_path):
    other = layouts.of(checkpoint.read(small_models.target(tmp_path, layers=2)))
    assert replay_folders.head_reason(other, small_models.TARGET) == "replay follows EAGLE-3 heads only"


def target(folder):
    small_models.target(folder, layers=6)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    return checkpoint.read(folder)


def test_what_the_target_would_take_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "ready", lambda _: True)
    whole = target(tmp_path)
    assert replay_folders.machine_reason(whole) == ""
    monkeypatch.setattr(environments, "ready", lambda _: False)
    assert "setup --engine reference" in replay_folders.machine_reason(whole)
    little = types.SimpleNamespace(available=1000)
    monkeypatch.setattr(replay_folders.psutil, "virtual_memory", lambda: little)
    assert "in fp32 takes about 0.0 GiB of memory, 0.0 are free" in replay_folders.machine_reason(whole)
    (tmp_path / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in replay_folders.machine_reason(whole)
    bare = checkpoint.Checkpoint(tmp_path, {}, {}, {}, ("pytorch_model.bin",))
    assert "not safetensors" in replay_folders.machine_reason(bare)


def test_weights_grow_to_fp32():
    tensors = {"a": ("BF16", [10, 10]), "b": ("I32", [5]), "c": ("F32", [3]), "d": ("F8_E4M3", [4])}
    assert replay_folders.fp32_bytes(checkpoint.Checkpoint(None, {}, tensors)) == 400 + 160 + 12 + 16


def test_the_config_is_written_out_for_the_scripts(tmp_path):
    config = {"rope_theta": None, "rope_parameters": {"rope_theta": 5e5}, "num_key_value_heads": None}
    asked = replay_folders.request_of(head(tmp_path, config | {"draft_vocab_size": None}))
    assert (asked["rope_theta"], asked["num_key_value_heads"], asked["head_dim"]) == (5e5, 2, 4)
    assert asked["draft_vocab_size"] == 40 and asked["norm_before_residual"] is False
    bare = head(tmp_path, {"rope_theta": None})
    assert replay_folders.request_of(bare)["rope_theta"] == 10_000
    speculators = small_models.speculators(tmp_path / "s")
    config = json.loads((speculators / "config.json").read_text())
    del config["norm_before_residual"]
    (speculators / "config.json").write_text(json.dumps(config))
    assert replay_folders.request_of(layouts.of(checkpoint.read(speculators)))["norm_before_residual"] is True


@pytest.fixture
def asked(monkeypatch):
    """What the scripts were asked; they answer with two answers, one of which ends early."""
    found = {}
    tokens = {"one": [5, 6, 7, 8, 9, 2, 30, 31], "two": [4, 2, 30, 31, 32, 33, 34, 35]}

    def ask(name, request, words=(), progress=None):
        found[name] = request
        if name == "what_if":
            found["packed"] = load_file(request["sequences"])
            return {"as it is": {"fault": None, "accept_length": 1.5, "every_position": [1.5]}}
        return {"tokens": tokens, "prompt_tokens": {"one": [1, 3], "two": [1, 4]}}

    monkeypatch.setattr(scripts, "ask_script", ask)
    monkeypatch.setattr(scripts, "run_script", lambda name, words, say: found.__setitem__(name, list(map(str, words))))
    monkeypatch.setattr(replay_folders, "machine_reason", lambda _: "")
    return found


def test_answers_end_where_the_text_ends_and_states_lie_around_the_layer_ids(tmp_path, asked):
    whole = checkpoint.read(small_models.target(tmp_path / "t", layers=6, config={"eos_token_id": [2]}))
    drafter = head(tmp_path / "d")
    found, reason = replay_folders.what_if(whole, drafter, 3, lambda _: None)
    assert (found["as it is"]["accept_length"], reason) == (1.5, "")
    assert asked["packed"]["ids"].tolist() == [1, 3, 5, 6, 7, 8, 9, 2]  # the answer `two` is too short for a chain
    assert asked["packed"]["prompt"].tolist() == [2]
    assert asked["what_if"]["layer_ids"] == [2, 3, 3] and asked["what_if"]["held"] == [1, 2, 3, 4]
    assert asked["capture_reference"][0] == str(tmp_path / "t") and asked["capture_reference"][3] == "1,2,3,4"
    assert asked["what_if"]["target_rope_theta"] == 1e6 and asked["what_if"]["k"] == 3
    assert len(asked["reference_greedy"]["prompts"]) == replay_folders.PROMPTS


def test_a_script_that_stops_is_a_reason_and_no_error(tmp_path, asked, monkeypatch):
    def stops(*_, **__):
        raise UserError("reference_greedy stopped. Its last line: no chat template")

    monkeypatch.setattr(scripts, "ask_script", stops)
    whole = checkpoint.read(small_models.target(tmp_path / "t", layers=6))
    assert replay_folders.what_if(whole, head(tmp_path / "d"), 3, lambda _: None) == (
        {},
        "reference_greedy stopped. Its last line: no chat template",
    )
