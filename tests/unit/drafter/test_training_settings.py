"""What the training script is asked for: by a training, by a judgement and by a variant."""

import json
from pathlib import Path

import pandas as pd
import pytest
from safetensors.numpy import load_file

from runners.drafter import corpus, judge, packed_sequences, published_results, retrain
from runners.engines.engine import Files
from runners.profiles.load import load
from runners.serve import scripts

LAB = load("lab-cpu")
SIZES = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size")
OTHERS = ("rms_norm_eps", "max_position_embeddings", "hidden_act", "bos_token_id", "eos_token_id")


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    config = dict.fromkeys((*SIZES, *OTHERS), 1) | {"rope_parameters": {"rope_theta": 5.0}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_judgement_trains_nothing_and_leaves_only_its_figures(target, tmp_path, monkeypatch):
    def script(name, words, progress):
        settings = json.loads(Path(words[0]).read_text())
        assert name == "train_drafter" and settings["epochs"] == 0 and settings["start"] == "drafter"
        output = Path(settings["output"])
        output.mkdir()
        (output / "history.json").write_text(json.dumps({"history": [{"accept_length": 1.5}]}))

    monkeypatch.setattr(scripts, "run_script", script)
    states = tmp_path / "states"
    states.mkdir()
    found = judge.judge(LAB, target, Path("drafter"), tmp_path / "text", states, lambda _: None)
    assert found == {"accept_length": 1.5} and not (states / "judged").exists()


def test_a_variant_goes_on_from_the_published_drafter_and_is_served_with_the_usual_boundaries(target, tmp_path):
    chosen = LAB.training.variants["trained+1"]
    files = Files(gguf=None, folder=target, drafter_gguf=None, drafter_folder=None)
    settings = retrain.variant_settings(LAB, chosen, files, target, tmp_path / "states", tmp_path)
    assert settings["start"].endswith("drafters/aligned") and settings["states"].endswith("states")
    assert settings["learning_rate"] < LAB.training.learning_rate
    served = settings["config"]["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
    assert served == LAB.training.boundaries != chosen.boundaries


def test_a_variants_folder_is_named_by_its_settings():
    names = {retrain._folder(LAB, name).name for name in LAB.training.variants}
    assert len(names) == len(LAB.training.variants)
    assert retrain._folder(LAB, "trained+1") == retrain._folder(LAB, "trained+1")


def test_held_out_sequences_are_the_first_greedy_ones(tmp_path, monkeypatch):
    rows = [("train", 0.0, 1), ("held-out", 0.7, 2), ("held-out", 0.0, 3), ("held-out", 0.0, 4), ("held-out", 0.0, 5)]
    answers = [
        {"part": part, "temperature": temperature, "prompt_tokens": [9], "answer_tokens": [token]}
        for part, temperature, token in rows
    ]
    pd.DataFrame(answers).to_parquet(tmp_path / "answers.parquet")
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    packed_sequences.pack_held_out(tmp_path / "packed" / "held-out.safetensors", 2)
    packed = load_file(tmp_path / "packed" / "held-out.safetensors")
    assert packed["ids"].tolist() == [9, 3, 9, 4] and packed["held_out"].tolist() == [1, 1]


def test_published_figures_of_the_drafter_are_read(tmp_path):
    record = published_results.training()
    assert record["facts"]["parameters"] > 0 and record["history"]
    assert published_results.training(tmp_path) == {"facts": {}, "history": []}
    assert set(published_results.text()["part"]) == {"train", "held-out"}
    sizes = published_results.scaling()["train_tokens"]
    assert len(sizes) > 1 and sizes.is_monotonic_increasing


@pytest.mark.slow
def test_each_term_that_falls_short_of_the_aim_is_named():
    aim = published_results.aim("published", "lab-cpu")
    assert len(aim) and set(aim["short"]) <= {"nothing", "step cost", "accept length", "both"}
