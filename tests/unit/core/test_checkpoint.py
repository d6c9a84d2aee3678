"""Model folders as files: one file or several, wrapped configs, and a config in each of its public forms."""

import pytest
import small_models

from runners.core import checkpoint
from runners.core.errors import UserError

IDS = "eagle_aux_hidden_state_layer_ids"


def test_several_files_are_read_as_one_model(tmp_path):
    whole = checkpoint.read(small_models.head(tmp_path / "one"))
    shards = checkpoint.read(small_models.head(tmp_path / "three", shards=3))
    assert shards.tensors == whole.tensors and len(set(shards.files.values())) == 3
    assert whole.files["fc.weight"].name == "model.safetensors"


def test_a_missing_shard_is_named(tmp_path):
    folder = small_models.head(tmp_path, shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(UserError, match="1 of 3 shards of the index are missing in .*model-00002"):
        checkpoint.read(folder)


@pytest.mark.parametrize(
    "harm, said",
    [
        (lambda f: (f / "config.json").unlink(), "a model is a folder with config.json"),
        (lambda f: (f / "config.json").write_text("{"), "config.json cannot be read"),
        (lambda f: (f / "config.json").write_text("[]"), "must hold a mapping"),
        (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
        (lambda f: (f / "model.safetensors").write_bytes(b"short"), "cannot be read"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x02" + b"\x00" * 7 + b"[]"), "cannot be read"),
        (lambda f: (f / "model.safetensors.index.json").write_text("[]"), "cannot be read"),
        (lambda f: (f / "model.safetensors.index.json").write_text("{}"), "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_sentence(tmp_path, harm, said):
    folder = small_models.head(tmp_path)
    harm(folder)
    with pytest.raises(UserError, match=said):
        checkpoint.read(folder)


def test_pickles_are_named_and_not_read(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"whatever")
    found = checkpoint.read(tmp_path)
    assert found.pickles == ("pytorch_model.bin",) and not found.tensors


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
def test_a_wrapper_keeps_the_language_model_one_level_down(key):
    assert checkpoint.text_config({"hidden_size": 1, key: {"hidden_size": 8}})["hidden_size"] == 8


def test_an_omni_wrapper_keeps_it_two_levels_down_and_null_counts_as_absent():
    assert checkpoint.text_config({"thinker_config": {"text_config": {"hidden_size": 8}}})["hidden_size"] == 8
    assert checkpoint.text_config({"text_config": None, "hidden_size": 3})["hidden_size"] == 3


def test_the_layers_keys_of_a_speculators_config_stand_at_the_top_unless_they_do_already():
    flat = checkpoint.flat_config(
        {
            "draft_vocab_size": None,
            "target_hidden_size": None,
            "norm_before_residual": True,
            "transformer_layer_config": {"hidden_size": 8, "norm_before_residual": False, "draft_vocab_size": 5},
        }
    )
    assert flat == {"hidden_size": 8, "norm_before_residual": True, "draft_vocab_size": 5}
    plain = {"hidden_size": 8, "draft_vocab_size": None}
    assert checkpoint.flat_config(plain) == plain


def test_layer_ids_stand_at_the_top_or_in_eagle_config():
    assert checkpoint.named_layer_ids({IDS: [1, 2, 3, 4]}) == [1, 2, 3, 4]
    assert checkpoint.named_layer_ids({"eagle_config": {IDS: [2, 15, 27]}}) == [2, 15, 27]
    assert checkpoint.named_layer_ids({IDS: [1, 2, 3], "eagle_config": {IDS: [4, 5, 6]}}) == [1, 2, 3]  # as vLLM
    for none in ({}, {IDS: None}, {IDS: []}, {"eagle_config": None}, {"eagle_config": {IDS: None}}):
        assert checkpoint.named_layer_ids(none) is None
    with pytest.raises(UserError, match="must be a list of integers"):
        checkpoint.named_layer_ids({IDS: "2,15,27"})


def test_the_number_of_states_follows_the_ids_wherever_they_stand():
    assert checkpoint.aux_count({IDS: [1, 2, 3, 4]}) == 4
    assert checkpoint.aux_count({"num_aux_hidden_states": 2}) == 2
    assert checkpoint.aux_count({}) == 3


def test_rope_is_read_under_each_of_its_names():
    assert checkpoint.rope_base({"rope_theta": 5e5}) == 5e5
    assert checkpoint.rope_base({"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}) == 1e6
    assert checkpoint.rope_base({"rope_theta": None, "rope_scaling": {"rope_theta": 7e4}}) == 7e4
    assert checkpoint.rope_base({"rope_scaling": None}) is None
    assert checkpoint.rope_scaling({"rope_scaling": {"type": "yarn", "factor": 4}}) == "yarn"
    assert checkpoint.rope_scaling({"rope_parameters": {"rope_type": "llama3"}}) == "llama3"
    assert checkpoint.rope_scaling({"rope_scaling": {"rope_type": "default"}}) == "none"
    assert checkpoint.rope_scaling({}) == "none"


def test_a_tensor_cut_off_has_fewer_bytes_than_its_header_says(tmp_path):
    path = small_models.head(tmp_path) / "model.safetensors"
    assert checkpoint.shard_bytes(path) == path.stat().st_size
    assert checkpoint.shard_bytes(tmp_path / "config.json") is None
