"""Draft models, MTP layers and EAGLE heads: the checks of files that apply to each."""

import json

import numpy as np
import pytest
import small_models

from runners.core import checkpoint
from runners.drafter import compatibility, draft_model_checks, layouts, mtp_checks

WORDS = {"<s>": 0, "a": 1, "b": 2, "c": 3}


def texts(findings, *levels):
    return " | ".join(f.text for f in findings if f.level in (levels or ("blocker", "warning", "note")))


def tokenizer(folder, vocabulary, added=()):
    held = {"model": {"vocab": vocabulary}, "added_tokens": [{"content": t, "id": i} for t, i in added]}
    (folder / "tokenizer.json").write_text(json.dumps(held))


def draft(tmp_path, size=40, layers=1, own=WORDS, theirs=WORDS):
    """Findings of a draft model of `layers` layers for a target of 8."""
    target = small_models.target(tmp_path / "target", layers=8)
    model = small_models.target(tmp_path / "draft", layers=layers, config={"vocab_size": size})
    for folder, vocabulary in ((target, theirs), (model, own)):
        if vocabulary is not None:
            tokenizer(folder, vocabulary)
    whole = checkpoint.read(target)
    return compatibility.check_layout(layouts.of(checkpoint.read(model)), whole.config, None, whole)


def test_a_draft_model_of_the_family_has_only_notes(tmp_path):
    found = draft(tmp_path)
    assert {f.level for f in found} == {"note"}
    assert "its weights have 0.192 of the target's bytes" in texts(found)


def test_tokens_with_other_ids_are_a_blocker_and_a_size_alone_is_padding(tmp_path):
    other = WORDS | {"b": 3, "c": 2}
    found = draft(tmp_path, own=other)
    assert "2 tokens have other ids in its tokenizer than in the target's, first 'b'" in texts(found, "blocker")
    found = draft(tmp_path, size=44)
    assert "it knows 44 tokens, the target 40: the same tokenizer, padded" in texts(found, "warning")
    assert not texts(found, "blocker")
    assert "it knows 400 tokens, the target 40" in texts(draft(tmp_path, size=400), "blocker")


def test_without_a_tokenizer_the_sizes_decide(tmp_path):
    found = draft(tmp_path, size=44, own=None)
    assert "it knows 44 tokens, the target 40" in texts(found, "blocker")
    assert "the tokenizers were not compared" in texts(found, "note")


def test_a_draft_model_near_the_targets_size_is_a_warning(tmp_path):
    assert "each drafted token costs about that part of a step" in texts(draft(tmp_path, layers=6), "warning")


def test_token_ids_of_each_form_of_tokenizer(tmp_path):
    tokenizer(tmp_path, {"a": 0}, [("<end>", 7)])
    assert draft_model_checks.token_ids(tmp_path) == {"a": 0, "<end>": 7}
    tokenizer(tmp_path, [["a", -1.0], ["b", -2.0]])
    assert draft_model_checks.token_ids(tmp_path) == {"a": 0, "b": 1}
    for broken in ("{", "[]", '{"model": null}', '{"model": {"vocab": 3}}'):
        (tmp_path / "tokenizer.json").write_text(broken)
        assert draft_model_checks.token_ids(tmp_path) is None


LAYER = small_models.layer("model.layers.4.", 8)
BEHIND = LAYER | {"model.layers.4.eh_proj.weight": np.zeros((8, 16), np.float32)}
NAMED = {"mtp.layers.0.mlp.up_proj.weight": np.zeros((8, 8), np.float32)}


def mtp(tmp_path, config, more):
    target = checkpoint.read(small_models.target(tmp_path, layers=4, config=config, more=more))
    return compatibility.check_layout(layouts.mtp_of(target), compatibility.sizes_of(target.config), None, target)


@pytest.mark.parametrize("count, more", [("num_nextn_predict_layers", BEHIND), ("mtp_num_hidden_layers", NAMED)])
def test_mtp_layers_that_are_there_have_only_notes(tmp_path, count, more):
    found = mtp(tmp_path, {count: 1}, more)
    assert {f.level for f in found} == {"note"} and "the config names 1 layers" in texts(found)


def test_mtp_layers_that_are_named_but_left_out_are_a_blocker(tmp_path):
    found = mtp(tmp_path, {"num_nextn_predict_layers": 1}, {})
    assert "names 1 MTP layers, but no tensor of one is there" in texts(found, "blocker")
    assert "the target has no MTP layers" in texts(mtp(tmp_path, {}, {}), "blocker")


def test_mtp_layers_of_another_target_are_a_blocker(tmp_path):
    tensors = {"mtp.fc.weight": np.zeros((6, 12), np.float32)}
    own = small_models.write(tmp_path, {"model_type": "qwen3_next_mtp", "hidden_size": 6, "n_predict": 1}, tensors)
    found = compatibility.check(checkpoint.read(own), small_models.TARGET, method="mtp")
    assert "its hidden_size is 6, but the target's is 8" in texts(found, "blocker")


def test_which_tensors_belong_to_mtp_layers():
    assert mtp_checks.is_mtp("layers.61.mlp.gate.weight", 61) and not mtp_checks.is_mtp("layers.60.mlp.gate.weight", 61)
    assert mtp_checks.is_mtp("language_model.model.layers.4.enorm.weight", 61)
    assert not mtp_checks.is_mtp("vision_tower.encoder.layers.70.mlp.weight", 61)


@pytest.mark.parametrize(
    "tensors, level, words",
    [
        ({"fc.weight": np.zeros((8, 16), np.float32)}, "blocker", ""),
        ({"fc.weight": np.zeros((8, 12), np.float32)}, "blocker", "an embedding and one state of the target have 16"),
        ({"layers.0.mlp.up_proj.weight": np.zeros((8, 8), np.float32)}, "blocker", "fc.weight is missing"),
    ],
)
def test_an_eagle_head_takes_an_embedding_and_one_state(tmp_path, tensors, level, words):
    config = {"architectures": ["LlamaForCausalLMEagle"], "hidden_size": 8, "vocab_size": 40, "rope_theta": 1e6}
    found = compatibility.check(checkpoint.read(small_models.write(tmp_path, config, tensors)), small_models.TARGET)
    assert words in texts(found, level)
    assert bool(words) == bool(texts(found, "blocker"))


def test_a_method_that_is_not_known_gets_what_applies_to_all(tmp_path):
    config = {"dflash_config": {"target_layer_ids": [1]}, "max_position_embeddings": 64, "vocab_size": 44}
    own = small_models.write(tmp_path, config, {"fc.weight": np.zeros((8, 16), np.float32)})
    found = compatibility.check(checkpoint.read(own), small_models.TARGET, method="dflash")
    assert "limit is 64 positions" in texts(found, "warning") and "its vocab_size is 44" in texts(found, "warning")
    assert "of DFlash drafter only files, vocabulary, limits and RoPE were looked at" in texts(found, "note")
