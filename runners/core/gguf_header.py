"""What a GGUF file says of its model, read from its head; weights are not loaded.

The format (github.com/ggml-org/ggml, docs/gguf.md, versions 2 and 3, little-endian): "GGUF", a version (u32), how many
tensors and how many key-value pairs (u64 each), then the pairs: a key, a type (u32), a value.
"""

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from runners.core.errors import UserError

MAGIC = b"GGUF"
LONGEST_TEXT = 1 << 24  # bytes: a chat template has some thousand; more is no GGUF file
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, ARRAY = 8, 9
PART = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")
# general.file_type -> the name that llama.cpp gives this mixture of precisions (include/llama.h, llama_ftype).
PRECISIONS = {
    **{0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S"},
    **{12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K"},
    **{19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL"},
    **{26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16"},
}


@dataclass(frozen=True)
class GgufFacts:
    """None, or "" for a text, where the file does not say. context_length: what the model was made for."""

    architecture: str
    name: str
    precision: str
    layers: int | None
    hidden_size: int | None
    vocab_size: int | None
    context_length: int | None
    kv_width: int | None  # numbers of K and V together that one layer keeps of one token


def read(path: Path) -> GgufFacts:
    """UserError when it is no GGUF file, or is cut off within its head."""
    try:
        with open(path, "rb") as handle:
            pairs = _pairs(handle)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); restore it.") from error
    except (ValueError, struct.error, OverflowError) as error:
        raise UserError(f"{path} is not a whole GGUF file ({error}); copy it again, or give another.") from error
    kind = str(pairs.get("general.architecture", ""))

    def number(key: str) -> int | None:
        value = pairs.get(f"{kind}.{key}")
        return int(value) if isinstance(value, int) else None

    return GgufFacts(
        kind,
        str(pairs.get("general.name", "")),
        PRECISIONS.get(pairs.get("general.file_type", -1), "GGUF"),
        number("block_count"),
        number("embedding_length"),
        number("vocab_size") or pairs.get("tokenizer.ggml.tokens[]"),
        number("context_length"),
        _kv_width(number),
    )


def _kv_width(number: Any) -> int | None:
    """From the heads of K and V and their lengths; None where the file names no heads."""
    heads, kv_heads = number("attention.head_count"), number("attention.head_count_kv")
    if not heads or not number("embedding_length"):
        return None
    one = number("embedding_length") // heads
    lengths = [number(f"attention.{side}_length") or one for side in ("key", "value")]
    return int((kv_heads or heads) * sum(lengths))


def _pairs(handle: BinaryIO) -> dict[str, Any]:
    """The key-value pairs; of an array, whose key then ends in [], how many entries it has."""
    if handle.read(4) != MAGIC:
        raise ValueError("it does not begin with GGUF")
    version, _, count = struct.unpack("<IQQ", _bytes(handle, 20))
    if version not in (2, 3):
        raise ValueError(f"its version is {version}")
    found: dict[str, Any] = {}
    for _ in range(count):
        key = _text(handle)
        kind = _number(handle, "<I")
        found[f"{key}[]" if kind == ARRAY else key] = _value(handle, kind)
    return found


def _value(handle: BinaryIO, kind: int) -> Any:
    if kind == TEXT:
        return _text(handle)
    if kind == ARRAY:
        inner, entries = _number(handle, "<I"), _number(handle, "<Q")
        if inner in NUMBERS:
            handle.seek(entries * struct.calcsize(NUMBERS[inner]), 1)
        else:
            for _ in range(entries):
                _value(handle, inner)
        return entries
    if kind not in NUMBERS:
        raise ValueError(f"a value of the unknown type {kind}")
    return _number(handle, NUMBERS[kind])


def _text(handle: BinaryIO) -> str:
    length = _number(handle, "<Q")
    if length > LONGEST_TEXT:
        raise ValueError("a text is too long")
    return _bytes(handle, length).decode("utf-8", errors="replace")


def _number(handle: BinaryIO, form: str) -> Any:
    return struct.unpack(form, _bytes(handle, struct.calcsize(form)))[0]


def _bytes(handle: BinaryIO, count: int) -> bytes:
    found = handle.read(count)
    if len(found) < count:
        raise ValueError("it ends within its head")
    return found


def bytes_on_disk(path: Path) -> int:
    """Of the file, or of all its parts where it is the first of several (name-00001-of-00003.gguf)."""
    part = PART.search(path.name)
    parts = path.parent.glob(PART.sub("", path.name) + f"-*-of-{part[1]}.gguf") if part else [path]
    return sum(p.stat().st_size for p in parts)
