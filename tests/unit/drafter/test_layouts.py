"""What a drafter's folder holds, by its config and by its tensors, in each public layout."""

import numpy as np
import pytest
import small_models

from runners.core import checkpoint
from runners.drafter import layouts

MLA = {"layers.0.self_attn.q_a_proj.weight": np.zeros((4, 16), np.float32)}
LAYER = {"layers.0.self_attn.q_proj.weight": np.zeros((8, 8), np.float32)}
FC2 = {"fc.weight": np.zeros((8, 16), np.float32)}


def of(folder):
    return layouts.of(checkpoint.read(folder))


@pytest.mark.parametrize("prefix", ["midlayer.", "layers.0.", "model.midlayer.", "model.layers.0."])
def test_one_layer_in_any_spelling_is_found(tmp_path, prefix):
    found = of(small_models.head(tmp_path, tensors=small_models.head_tensors(prefix)))
    assert found.method == "eagle3" and found.title == "EAGLE-3 head" and found.layers == 1
    assert found.shape("layers.0.self_attn.q_proj.weight") == [8, 16]


def test_the_layout_of_speculators_is_flattened(tmp_path):
    found = of(small_models.speculators(tmp_path))
    assert (found.method, found.title) == ("eagle3", "EAGLE-3 head, as speculators writes it")
    assert found.config["max_position_embeddings"] == 128 and found.config["draft_vocab_size"] == 10


@pytest.mark.parametrize(
    "config, tensors, method, title",
    [
        ({"architectures": ["Eagle3LlamaForCausalLM"]}, LAYER, "eagle3", "EAGLE-3 head"),  # AngelSlim
        ({"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, MLA, "eagle3", "EAGLE-3 head with MLA"),
        # EAGLE's own export calls itself a whole model.
        ({"architectures": ["LlamaForCausalLM"], "draft_vocab_size": 10}, LAYER, "eagle3", "EAGLE-3 head"),
        ({"architectures": ["LlamaForCausalLM"], "hidden_size": 8}, FC2, "eagle", layouts.TITLES["eagle"]),
        ({"architectures": ["LlamaForCausalLMEagle"]}, LAYER, "eagle", layouts.TITLES["eagle"]),
        ({"eagle_config": {"use_aux_hidden_state": True}}, LAYER, "eagle3", "EAGLE-3 head"),  # ModelOpt
        ({"speculators_model_type": "peagle"}, LAYER, "eagle3", "EAGLE-3 head, as speculators writes it"),
        ({"dflash_config": {"target_layer_ids": [1]}}, LAYER, "dflash", "DFlash drafter"),
        ({"architectures": ["Qwen3DSparkModel"]}, LAYER, "dspark", "DSpark drafter"),
        ({"model_type": "medusa"}, LAYER, "medusa", "Medusa heads"),
        ({"model_type": "qwen3_next_mtp"}, LAYER, "mtp", "MTP layers"),
        ({}, {"model.layers.4.eh_proj.weight": np.zeros((8, 16), np.float32)}, "mtp", "MTP layers"),
        ({"architectures": ["Qwen2ForCausalLM"]}, LAYER, "draft_model", "draft model"),
        ({"speculators_model_type": "brand_new"}, LAYER, "brand_new", "brand_new, as speculators writes it"),
    ],
)
def test_method_and_title_of_each_kind(tmp_path, config, tensors, method, title):
    found = of(small_models.write(tmp_path, config, tensors))
    assert (found.method, found.title) == (method, title)


def test_pickles_are_known_by_their_config(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1}')
    assert of(tmp_path).method == "eagle"
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 1, "draft_vocab_size": 5, "kv_lora_rank": 4}')
    assert of(tmp_path).title == "EAGLE-3 head with MLA"


def test_two_layers_are_said(tmp_path):
    tensors = small_models.head_tensors() | small_models.layer("layers.1.", 8)
    assert of(small_models.head(tmp_path, tensors=tensors)).title == "EAGLE-3 head of 2 layers"


def test_bytes_follow_the_dtype():
    assert layouts.weight_bytes({"a": ("BF16", [2, 3]), "b": ("I32", [4])}) == 28
