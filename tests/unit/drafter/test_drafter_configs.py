"""Configs of published drafters in their several forms: no false blocker, and each real fault is said."""

import numpy as np
import pytest
import small_models
from small_models import HIDDEN

from runners.core import checkpoint
from runners.core.errors import UserError
from runners.drafter import compatibility

IDS = "eagle_aux_hidden_state_layer_ids"
FOUR = [2, 10, 20, 27]


def found(folder, target=None, context=None):
    return compatibility.check(checkpoint.read(folder), small_models.TARGET | (target or {}), context)


def texts(findings, *levels):
    return " | ".join(f.text for f in findings if f.level in levels)


def test_a_whole_head_has_only_notes_in_either_layout(tmp_path):
    for folder in (small_models.head(tmp_path / "a"), small_models.speculators(tmp_path / "b")):
        assert {f.level for f in found(folder)} == {"note"}, folder.name


def test_four_layer_ids_at_the_top_are_no_blocker(tmp_path):
    tensors = small_models.head_tensors(aux=4)
    seen = found(small_models.head(tmp_path, {IDS: FOUR}, tensors))
    assert not texts(seen, "blocker")
    assert f"inputs of layers {FOUR}" in texts(seen, "note") and "those in eagle_config" in texts(seen, "note")
    # vLLM 0.32 itself does not count them (llama_eagle3.py), which the config can mend.
    assert "it expects 3 aux states, not 4" in texts(seen, "warning")
    mended = found(small_models.head(tmp_path, {IDS: FOUR, "num_aux_hidden_states": 4}, tensors))
    assert not texts(mended, "blocker", "warning")
    nested = found(small_models.head(tmp_path, {"eagle_config": {IDS: FOUR}}, tensors))
    assert not texts(nested, "blocker", "warning")


def test_three_states_for_four_named_layers_stay_a_blocker(tmp_path):
    seen = found(small_models.head(tmp_path, {IDS: FOUR}))
    assert "fc takes 24 inputs, but 4 aux states of the target have 32" in texts(seen, "blocker")


def test_limits_rope_and_shapes_that_are_nested_are_compared(tmp_path):
    seen = found(small_models.speculators(tmp_path, layer_config={"max_position_embeddings": 64, "rope_theta": 1e4}))
    assert "limit is 64 positions, but requests may have 128" in texts(seen, "warning")
    assert "its RoPE base is 10,000, but the target's is 1,000,000" in texts(seen, "warning")
    seen = found(small_models.speculators(tmp_path, layer_config={"hidden_size": 6}))
    assert "q_proj takes 16 inputs, not 2 x 6" in texts(seen, "blocker")
    assert not texts(found(small_models.speculators(tmp_path)), "blocker", "warning")


def test_a_missing_rope_base_is_what_engines_take_and_is_said(tmp_path):
    config = dict.fromkeys(["rope_theta"])
    seen = found(small_models.head(tmp_path, config))
    assert "no rope_theta: engines take 10,000, but the target's is 1,000,000" in texts(seen, "warning")
    assert [f.fault for f in seen if "no rope_theta" in f.text] == ["rope-base"]
    seen = found(small_models.speculators(tmp_path, layer_config=config))
    assert "no rope_theta" in texts(seen, "warning")
    assert not texts(found(small_models.head(tmp_path, config), {"rope_theta": 1e4}), "warning")
    parameters = {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
    assert not texts(found(small_models.head(tmp_path, parameters)), "warning")


def test_another_rope_scaling_is_a_note(tmp_path):
    scaled = {"rope_scaling": {"rope_type": "yarn", "factor": 4}}
    assert "its RoPE scaling is none, the target's yarn" in texts(found(small_models.head(tmp_path), scaled), "note")


def test_a_null_draft_vocabulary_is_the_whole_one(tmp_path):
    whole = {n: v for n, v in small_models.head_tensors().items() if n not in ("d2t", "t2d", "lm_head.weight")}
    null = {"draft_vocab_size": None}
    seen = found(small_models.head(tmp_path, null, whole))
    assert not texts(seen, "blocker", "warning") and "the target's head is used" in texts(seen, "note")
    own = whole | {"lm_head.weight": small_models.numbers(40, HIDDEN)}
    assert not texts(found(small_models.head(tmp_path, null, own)), "blocker", "warning")
    seen = found(small_models.speculators(tmp_path / "s", null, tensors=own))
    assert not texts(seen, "blocker", "warning")
    small = whole | {"lm_head.weight": small_models.numbers(10, HIDDEN)}
    seen = found(small_models.head(tmp_path, null, small))
    assert "lm_head has 10 rows, but the config says 40" in texts(seen, "blocker")


def test_a_draft_vocabulary_of_the_whole_without_a_head_is_drawn_at_random_by_sglang(tmp_path):
    bare = {n: v for n, v in small_models.head_tensors().items() if n not in ("d2t", "t2d", "lm_head.weight")}
    seen = found(small_models.head(tmp_path, {"draft_vocab_size": 40}, bare))
    assert "SGLang draws a head at random" in texts(seen, "warning") and not texts(seen, "blocker")
    assert [f.fault for f in seen if f.level == "warning"] == ["random-head"]


SPECULATORS_KEYS = {"embed_requires_grad": True, "auto_map": {"": "a.B"}, "_attn_implementation": "eager"}
MODELOPT = {"eagle_config": {"use_aux_hidden_state": True, "use_mtp_layernorm": False, "next_layer_regular": True}}
ANGELSLIM = {"modal_type": "LLM", "max_window_layers": 36, "use_sliding_window": False, "sliding_window": None}
NOT_SET = {"trainers_note": None, "odd_switch": False}


@pytest.mark.parametrize("config", [SPECULATORS_KEYS, MODELOPT, ANGELSLIM, NOT_SET])
def test_keys_that_trainers_write_are_no_warning(tmp_path, config):
    assert not texts(found(small_models.head(tmp_path, config)), "warning", "blocker")


def test_a_key_copied_from_the_target_is_no_warning(tmp_path):
    folder = small_models.head(tmp_path, {"n_routed_experts": 8})
    assert not texts(found(folder, {"n_routed_experts": 8}), "warning")
    assert "n_routed_experts" in texts(found(folder), "warning")


def test_mla_heads_are_checked_by_what_their_attention_takes_in(tmp_path):
    tensors = {n: v for n, v in small_models.head_tensors("layers.0.").items() if "self_attn" not in n}
    names = [f"layers.0.self_attn.{n}.weight" for n in ("q_a_proj", "kv_a_proj_with_mqa")]
    config = {"architectures": ["Eagle3DeepseekV2ForCausalLM"], "q_lora_rank": 4, "kv_lora_rank": 4}
    right = tensors | {n: small_models.numbers(4, 2 * HIDDEN) for n in names}
    assert not texts(found(small_models.head(tmp_path, config, right)), "warning", "blocker")
    wrong = tensors | {n: small_models.numbers(4, HIDDEN) for n in names}
    assert "q_a_proj takes 8 inputs, not 2 x 8" in texts(found(small_models.head(tmp_path, config, wrong)), "blocker")


def test_norms_must_stand_in_both_the_config_and_the_weights(tmp_path):
    with_norm = small_models.head_tensors() | {"input_norm.weight": np.ones(24, np.float32)}
    assert "norm_before_fc is not set" in texts(found(small_models.head(tmp_path, {}, with_norm)), "warning")
    assert not texts(found(small_models.head(tmp_path, {"norm_before_fc": True}, with_norm)), "warning", "blocker")
    nested = {"eagle_config": {"norm_before_fc": True}}
    assert not texts(found(small_models.head(tmp_path, nested, with_norm)), "warning", "blocker")
    seen = found(small_models.head(tmp_path, {"fc_norm": True}))
    assert "there is no tensor fc_norm.weight" in texts(seen, "blocker")


def test_a_head_of_another_target_is_told_by_every_size(tmp_path):
    folder = small_models.head(tmp_path, {"target_hidden_size": 8})
    seen = texts(found(folder, {"hidden_size": 16, "vocab_size": 48}), "blocker", "warning")
    for words in ("of size 8, but this target's have 16", "fc takes 24 inputs", "is 8, the target's 16"):
        assert words in seen
    assert "its vocab_size is 40, but the target's is 48" in seen and "t2d has 40 entries" in seen


def test_a_map_of_fractions_and_one_of_another_vocabulary_are_blockers(tmp_path):
    tensors = small_models.head_tensors()
    halves = tensors | {"d2t": tensors["d2t"].astype(np.float16)}
    assert "d2t is stored as F16" in texts(found(small_models.head(tmp_path, {}, halves)), "blocker")


def test_more_layers_than_weights_are_said(tmp_path):
    seen = found(small_models.head(tmp_path, {"num_hidden_layers": 40}))
    assert "says num_hidden_layers 40, but its weights hold 1" in texts(seen, "warning")


def test_a_file_that_is_cut_off_is_a_blocker(tmp_path):
    folder = small_models.head(tmp_path, shards=2)
    for path in folder.glob("*-of-*"):
        path.write_bytes(path.read_bytes() + b"more")
    assert texts(found(folder), "blocker").count("its header says") == 2


def test_pickles_are_compared_by_their_config_alone(tmp_path):
    folder = small_models.head(tmp_path, {"rope_theta": 1e4})
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    seen = found(folder)
    assert "pickles (pytorch_model.bin)" in texts(seen, "warning") and "RoPE base" in texts(seen, "warning")
    assert not texts(seen, "blocker")


def test_quantised_weights_are_left_out_of_the_comparison(tmp_path):
    tensors = small_models.head_tensors()
    packed = {n: v for n, v in tensors.items() if n not in ("fc.weight", "lm_head.weight")}
    packed |= {f"{n}.weight_packed": np.zeros((8, 3), np.int32) for n in ("fc", "lm_head")}
    seen = found(small_models.head(tmp_path, {}, packed))
    assert not texts(seen, "blocker") and "fc is stored quantised" in texts(seen, "note")


def test_a_drafter_of_another_method_is_said(tmp_path):
    folder = small_models.target(tmp_path, layers=2)
    assert "by its files it is a drafter of another method" in texts(found(folder), "warning")


def test_a_target_without_sizes_is_one_sentence(tmp_path):
    drafter = checkpoint.read(small_models.head(tmp_path))
    with pytest.raises(UserError, match="has no hidden_size"):
        compatibility.check(drafter, {"vocab_size": 40})


def test_the_target_of_a_wrapper_is_its_language_model(tmp_path):
    drafter = checkpoint.read(small_models.head(tmp_path))
    seen = compatibility.check(drafter, {"text_config": small_models.TARGET, "vision_config": {"hidden_size": 3}})
    assert not texts(seen, "blocker", "warning")


def test_layer_ids_of_a_llama_are_told_as_sglang_takes_them(tmp_path):
    ids = {"eagle_config": {IDS: [2, 15, 27]}}
    assert "SGLang adds one ([3, 16, 28])" in texts(found(small_models.head(tmp_path, ids)), "note")
    kimi = texts(found(small_models.head(tmp_path, ids), {"model_type": "kimi_k2"}), "note")
    assert "SGLang to 0.5.12 adds one ([3, 16, 28]), later releases only where the first id is 1" in kimi


def test_layer_ids_that_were_written_for_an_engine_that_adds_one_are_a_warning(tmp_path):
    seen = found(small_models.head(tmp_path, {"eagle_config": {IDS: [1, 14, 26]}}))
    assert "are the usual [2, 15, 27] less one" in texts(seen, "warning")
    assert [f.fault for f in seen if f.level == "warning"] == ["boundary-1"]


def test_a_map_of_target_ids_is_told_by_what_t2d_marks(tmp_path):
    tensors = small_models.head_tensors()
    absolute = tensors | {"d2t": np.flatnonzero(tensors["t2d"])}
    seen = found(small_models.head(tmp_path, {}, absolute))
    assert "d2t holds the target's ids, which t2d marks" in texts(seen, "blocker")
    # The same without t2d: its ids, taken for offsets, lead too far.
    bare = {n: v for n, v in absolute.items() if n != "t2d"}
    assert "instead of offsets" in texts(found(small_models.head(tmp_path, {}, bare)), "blocker")
