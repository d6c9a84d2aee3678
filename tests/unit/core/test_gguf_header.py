"""What a GGUF file's head says, and that a damaged one is refused in a sentence."""

import struct

import pytest
import tiny_models

from runners.core import gguf_header
from runners.core.errors import UserError


def test_a_head_tells_the_model_without_its_weights(tmp_path):
    found = gguf_header.read(tiny_models.gguf(tmp_path / "m.gguf"))
    assert (found.architecture, found.name, found.precision) == ("llama", "Toy 1M", "Q4_K_M")
    assert (found.layers, found.hidden_size, found.vocab_size, found.context_length) == (4, 64, 99, 4096)
    assert found.kv_width == 2 * 2 * 16, "K and V of two heads of 64 / 4"


def test_what_it_does_not_say_is_not_known(tmp_path):
    found = gguf_header.read(tiny_models.gguf(tmp_path / "m.gguf", {"general.architecture": "llama"}))
    assert found.name == "" and found.precision == "GGUF"
    assert {found.layers, found.hidden_size, found.vocab_size, found.context_length, found.kv_width} == {None}


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda raw: b"PK" + raw[2:], "does not begin with GGUF"),
        (lambda raw: raw[:60], "ends within its head"),
        (lambda raw: raw[:4] + struct.pack("<I", 9) + raw[8:], "its version is 9"),
        (lambda raw: raw[:24] + struct.pack("<Q", 1 << 40) + raw[32:], "a text is too long"),
        (lambda raw: b"", "does not begin with GGUF"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, harm, said):
    path = tiny_models.gguf(tmp_path / "m.gguf")
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(UserError, match=f"m.gguf is not a whole GGUF file .*{said}.*; copy it again"):
        gguf_header.read(path)
    with pytest.raises(UserError, match="cannot be read"):
        gguf_header.read(tmp_path / "nowhere.gguf")


def test_the_parts_of_a_model_are_one(tmp_path):
    for n in (1, 2):
        tiny_models.gguf(tmp_path / f"m-0000{n}-of-00002.gguf")
    other = tiny_models.gguf(tmp_path / "other.gguf")
    one = other.stat().st_size
    assert gguf_header.bytes_on_disk(other) == one
    assert gguf_header.bytes_on_disk(tmp_path / "m-00001-of-00002.gguf") == 2 * one
