"""Layer ids under each engine's convention: the case's ids, both ways, and what cannot be said."""

import pytest

from runners.core.errors import UserError
from runners.engines import layer_ids

DEFAULT = [2, 30, 58]


@pytest.mark.parametrize(
    ("ids", "engine", "version", "captured"),
    [
        ([1, 29, 57], "sglang", "0.5.9", DEFAULT),
        ([1, 29, 57], "sglang", "0.5.23", DEFAULT),
        (DEFAULT, "sglang", "0.5.12.post1", [3, 31, 59]),
        (DEFAULT, "sglang", "0.5.13", DEFAULT),
        (DEFAULT, "vllm", "0.32.0", DEFAULT),
        ([1, 29, 57], "vllm", "0.32.0", [1, 29, 57]),
        (DEFAULT, "llamacpp", "", DEFAULT),
    ],
)
def test_what_ids_mean(ids, engine, version, captured):
    assert layer_ids.boundaries(ids, engine, version) == captured


@pytest.mark.parametrize("version", ["0.5.9", "0.5.12", "0.5.13", "0.5.23"])
def test_ids_for_the_default_boundaries_mean_them(version):
    ids = layer_ids.ids_for(DEFAULT, "sglang", version)
    assert layer_ids.boundaries(ids, "sglang", version) == DEFAULT


def test_llamas_of_sglang_always_add_one():
    assert layer_ids.boundaries(DEFAULT, "sglang", "0.5.23", "llama") == [3, 31, 59]
    assert layer_ids.ids_for(DEFAULT, "sglang", "0.5.23", "llama") == [1, 29, 57]


def test_what_no_ids_mean_and_what_is_unknown_is_said():
    with pytest.raises(UserError, match="cannot capture the inputs of layers"):
        layer_ids.ids_for([1, 29, 57], "sglang", "0.5.23")
    with pytest.raises(UserError, match="no release number"):
        layer_ids.boundaries(DEFAULT, "sglang", "main")
    with pytest.raises(UserError, match="No engine"):
        layer_ids.boundaries(DEFAULT, "tensorrt", "1")
