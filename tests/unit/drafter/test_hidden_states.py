"""Alignment on made-up states: the offset is found, with a margin; drift stands beside the next layer."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from runners.core.errors import UserError
from runners.drafter import hidden_states

RNG = np.random.default_rng(0)
LAYERS, HIDDEN, LENGTHS = 6, 32, [5, 7]
# A residual stream: each boundary is the one before plus something small.
STREAM = np.cumsum(RNG.standard_normal((sum(LENGTHS), LAYERS, HIDDEN)), axis=1).astype(np.float32)


def write(folder, source, boundaries, values, tokens=None):
    folder.mkdir()
    tensors = {"states": values.astype(np.float16), "lengths": np.asarray(LENGTHS)}
    save_file(tensors, folder / "shard-0000.safetensors")
    names = [f"input of layer {b}" for b in boundaries]
    manifest = {"source": source, "boundaries": names, "tokens": tokens or len(values)}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_the_nearest_boundary_is_the_offset_of_a_shifted_engine(tmp_path):
    reference = hidden_states.load(write(tmp_path / "r", "reference", range(LAYERS), STREAM))
    shifted = STREAM[:, [2, 4]] + 0.01 * RNG.standard_normal((len(STREAM), 2, HIDDEN))
    engine = hidden_states.load(write(tmp_path / "e", "engine", [1, 3], shifted))
    found = hidden_states.offsets(hidden_states.slot_map(engine, reference))
    assert list(found["slot"]) == [1, 3] and list(found["nearest"]) == [2, 4]
    assert list(found["offset"]) == [1, 1] and (found["margin"] > 5).all()


def test_drift_is_small_beside_the_next_layer(tmp_path):
    reference = hidden_states.load(write(tmp_path / "r", "reference", range(LAYERS), STREAM))
    near = STREAM * (1 + 0.01 * RNG.standard_normal(STREAM.shape))
    table = hidden_states.drift(hidden_states.load(write(tmp_path / "e", "int4", range(LAYERS), near)), reference)
    assert table["drift"].between(0.005, 0.02).all()
    assert (table["to_next"].dropna() > 10 * table["drift"].iloc[:-1]).all()
    assert np.isnan(table["to_next"].iloc[-1])


def test_a_sequences_first_token_is_left_out(tmp_path):
    loud = STREAM.copy()
    loud[[0, LENGTHS[0]]] *= 50
    reference = hidden_states.load(write(tmp_path / "r", "reference", range(LAYERS), STREAM))
    table = hidden_states.drift(hidden_states.load(write(tmp_path / "e", "engine", range(LAYERS), loud)), reference)
    assert table["drift"].max() < 0.01


def test_states_that_are_missing_or_do_not_fit_are_sentences(tmp_path):
    with pytest.raises(UserError, match="manifest.json is missing"):
        hidden_states.load(tmp_path)
    with pytest.raises(UserError, match="its manifest says 99"):
        hidden_states.load(write(tmp_path / "bad", "x", range(LAYERS), STREAM, tokens=99))
    good = hidden_states.load(write(tmp_path / "good", "x", range(LAYERS), STREAM))
    with pytest.raises(UserError, match="no input of layer 17"):
        good.at(17)
