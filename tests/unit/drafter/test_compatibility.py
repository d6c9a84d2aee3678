"""Pre-flight of a drafter: each fault in its files is named, a whole one passes; causes are ranked by evidence."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from runners.core import checkpoint
from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.drafter import compatibility, measured
from runners.drafter.diagnose import paired_gain, rank
from runners.profiles import load

TARGET = {
    "hidden_size": 8,
    "vocab_size": 40,
    "num_hidden_layers": 30,
    "max_position_embeddings": 128,
    "rope_theta": 1e5,
}


def whole():
    rng = np.random.default_rng(0)
    ids = np.arange(0, 40, 4)
    tensors = {
        "fc.weight": rng.standard_normal((8, 24)).astype(np.float16),
        "midlayer.self_attn.q_proj.weight": rng.standard_normal((8, 16)).astype(np.float16),
        "lm_head.weight": rng.standard_normal((10, 8)).astype(np.float16),
        "d2t": ids - np.arange(10),
        "t2d": np.isin(np.arange(40), ids),
    }
    config = {"hidden_size": 8, "vocab_size": 40, "draft_vocab_size": 10, "max_position_embeddings": 128}
    config |= {"rope_theta": 1e5, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 15, 27]}}
    return tensors, config


def found(tmp_path, tensors, config, context=None):
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    return compatibility.check(checkpoint.read(tmp_path), TARGET, context)


def test_a_whole_drafter_has_only_notes(tmp_path):
    assert {f.level for f in found(tmp_path, *whole())} == {"note"}


def drop_head(t, c):
    del t["lm_head.weight"]


def double(t, c):
    t["d2t"][3] = t["d2t"][2] - 1


def absolute(t, c):
    t["d2t"] = t["d2t"] + np.arange(10) * 5


def rolled(t, c):
    t["d2t"] = np.roll(t["d2t"] + np.arange(10), 1) - np.arange(10)


def four_bits(t, c):
    c["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = [2, 15, 27, 29]
    t["fc.weight"] = np.round(np.random.default_rng(0).standard_normal((8, 32)) * 2).clip(-8, 7).astype(np.float16)


@pytest.mark.parametrize(
    ("damage", "level", "words", "fault"),
    [
        (drop_head, "blocker", "draws the head at random", "random-head"),
        (lambda t, c: t.pop("fc.weight"), "blocker", "fc.weight is missing", None),
        (lambda t, c: t.update({"fc.weight": t["fc.weight"][:, :16]}), "blocker", "fc takes 16 inputs", None),
        (lambda t, c: t.update({"lm_head.weight": t["lm_head.weight"][:7]}), "blocker", "lm_head has 7 rows", None),
        (lambda t, c: t.pop("d2t"), "blocker", "no d2t map", "wrong-map"),
        (double, "blocker", "same target token twice", "wrong-map"),
        (absolute, "blocker", "instead of offsets", "wrong-map"),
        (rolled, "warning", "does not ascend", "wrong-map"),
        (lambda t, c: c.update(max_position_embeddings=64), "warning", "limit is 64 positions", "short-context"),
        (lambda t, c: c.update(rope_theta=1e4), "warning", "RoPE base is 10,000", "rope-base"),
        (lambda t, c: c.update(quantization_config={"bits": 4}), "warning", "quantization_config", "int4"),
        (four_bits, "warning", "rounded to four bits", "int4"),
        (lambda t, c: c.update(my_own_flag=1), "warning", "my_own_flag", "norm-flag"),
        (lambda t, c: c.update(norm_before_residual=True), "note", "norm_before_residual is set", "norm-flag"),
        (
            lambda t, c: c["eagle_config"].update(eagle_aux_hidden_state_layer_ids=[2, 15, 40]),
            "blocker",
            "do not fit a target of 30 layers",
            None,
        ),
    ],
)
def test_each_fault_is_named(tmp_path, damage, level, words, fault):
    tensors, config = whole()
    damage(tensors, config)
    hits = [f for f in found(tmp_path, tensors, config) if words in f.text]
    assert hits and hits[0].level == level and hits[0].fault == fault


def test_layer_ids_are_told_under_both_conventions(tmp_path):
    texts = [f.text for f in found(tmp_path, *whole())]
    assert any("[2, 15, 27]" in t and "[3, 16, 28]" in t for t in texts)


def test_a_folder_that_cannot_be_read_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="a model is a folder with"):
        checkpoint.read(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"short")
    with pytest.raises(UserError, match="cannot be read"):
        checkpoint.read(tmp_path)


AS_IT_IS = {"as it is": {"fault": None, "accept_length": 1.2, "every_position": [1.2, 1.3, 1.1]}}


def test_the_fault_whose_undoing_gains_most_comes_first():
    alternatives = AS_IT_IS | {
        "states one layer earlier": {"fault": "boundary+1", "accept_length": 1.9, "every_position": [1.9, 2, 1.8]},
        "the target's own LM head": {"fault": "random-head", "accept_length": 1.4, "every_position": [1.4, 1.5, 1.3]},
        "flag": {"fault": "norm-flag", "accept_length": 1.21, "every_position": [1.205, 1.305, 1.105]},
    }
    likely = rank([Finding("note", "x", "", "norm-flag")], [], alternatives)
    assert [f.name for f in likely] == ["boundary+1", "random-head"]
    assert likely[0].gain == pytest.approx(0.7)


def test_nothing_accepted_points_to_head_and_map():
    likely = rank([], [measured.of_counts(100, 0, [0, 0, 0], "ledger")], {})
    assert {f.name for f in likely} == {"random-head", "wrong-map"}


def test_served_far_below_replay_points_to_the_engine_and_a_weak_drafter_is_called_weak():
    low = [measured.of_counts(100, 5, [5], "ledger")]
    as_it_is = {"as it is": {"fault": None, "accept_length": 1.9, "every_position": [1.9, 2, 1.8]}}
    assert [f.name for f in rank([], low, as_it_is)] == ["engine", "weak"]
    assert load.load("lab-cpu").training is not None


def test_a_gain_must_be_clear_of_chance():
    unchanged = [1.8, 2.1, 1.9, 2.0]
    assert paired_gain([v + 0.02 for v in unchanged], unchanged) == (pytest.approx(0.02), True)
    assert not paired_gain([1.9, 2.0, 2.0, 2.0], unchanged)[1]
    assert not paired_gain([2.0], [1.9])[1]
