"""Model folders of strangers: read as text alone, in bounds, or refused in one sentence; no code of theirs runs."""

import json
import pickle
import struct

import matrix
import pytest
import small_models

from runners.core import checkpoint
from runners.core.errors import UserError


class Payload:
    """Makes a folder where it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return (__import__("os").mkdir, (str(self.place),))


def header(**entry):
    """A safetensors file with this one entry in its header."""
    text = json.dumps({"fc.weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} | entry}).encode()
    return struct.pack("<Q", len(text)) + text + b"\0\0\0\0"


def long_config(folder):
    with open(folder / "config.json", "r+b") as file:
        file.truncate(checkpoint.CONFIG_LIMIT + 1)


def index(folder, *names):
    weights = {f"w{i}": name for i, name in enumerate(names)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))


DAMAGE = {
    "a shape of words": lambda f: (f / "model.safetensors").write_bytes(header(shape=["wide"])),
    "a negative shape": lambda f: (f / "model.safetensors").write_bytes(header(shape=[-1])),
    "one offset": lambda f: (f / "model.safetensors").write_bytes(header(data_offsets=[0])),
    "a dtype of lists": lambda f: (f / "model.safetensors").write_bytes(header(dtype=[])),
    "a header of 2**60 bytes": lambda f: (f / "model.safetensors").write_bytes(struct.pack("<Q", 2**60)),
    "a config of many bytes": long_config,
    "an index that leads out": lambda f: index(f, "../../secret.safetensors"),
    "an index with a path": lambda f: index(f, "/etc/passwd"),
    "an index of numbers": lambda f: index(f, 7),
}


@pytest.mark.parametrize("fault", matrix.FOLDERS, ids=lambda f: f.name)
def test_a_hostile_folder_is_one_sentence(tmp_path, fault):
    folder = small_models.head(tmp_path / "drafter")
    DAMAGE[fault.name](folder)
    with pytest.raises(UserError) as error:
        checkpoint.read(folder)
    assert fault.said in str(error.value) and len(str(error.value)) < 500


def test_no_pickle_is_loaded(tmp_path):
    folder = small_models.head(tmp_path / "drafter")
    (folder / "model.safetensors").unlink()
    with open(folder / "pytorch_model.bin", "wb") as file:
        pickle.dump(Payload(tmp_path / "ran"), file)
    found = checkpoint.read(folder)
    assert found.pickles == ("pytorch_model.bin",) and found.tensors == {}
    assert not (tmp_path / "ran").exists()
