"""The pre-flight of a drafter in each public form: several files, speculators' layout, layer ids at the top."""

import small_models

from runners.commands.preflight import configuration
from runners.profiles.load import load
from runners.profiles.profile import Profile

IDS = "eagle_aux_hidden_state_layer_ids"
NAME = "sglang-eagle3-own"


def found(tmp_path, drafter):
    content = load("kimi-k2.5-8x-rtx-pro-6000").model_dump()
    folder = small_models.target(tmp_path / "target", layers=2, config={"num_hidden_layers": 30})
    content["target"]["path"] = str(folder)
    content["drafters"]["own-k2.5"]["path"] = str(drafter)
    return list(configuration.check(Profile.model_validate(content), NAME))


def texts(findings, *levels):
    return " | ".join(f.text for f in findings if f.level in levels)


def test_a_drafter_in_several_files_is_compared(tmp_path):
    drafter = small_models.head(tmp_path / "head", {"target_hidden_size": 16}, shards=3)
    assert "it was made for states of size 16" in texts(found(tmp_path, drafter), "blocker")


def test_four_layer_ids_at_the_top_are_no_blocker(tmp_path):
    ids = [2, 10, 20, 27]
    drafter = small_models.head(tmp_path / "head", {IDS: ids}, small_models.head_tensors(aux=4))
    seen = found(tmp_path, drafter)
    assert not [f for f in seen if f.level == "blocker" and "aux" in f.text]
    assert "layer ids [2, 10, 20, 27] mean the inputs of layers [3, 11, 21, 28] in this release" in texts(seen, "note")


def test_the_limit_of_speculators_layout_is_compared(tmp_path):
    drafter = small_models.speculators(tmp_path / "head", layer_config={"max_position_embeddings": 64})
    assert "the drafter's limit is 64 positions" in texts(found(tmp_path, drafter), "warning")


def test_a_config_that_cannot_be_read_as_one_is_a_warning(tmp_path):
    drafter = small_models.head(tmp_path / "head", {IDS: "2,15,27"})
    assert "must be a list of integers" in texts(found(tmp_path, drafter), "warning")
