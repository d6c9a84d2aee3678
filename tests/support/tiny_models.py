"""Models and drafters as files of some hundred bytes: config.json with a header of weights, and the head of a GGUF."""

import json
import struct
from pathlib import Path
from typing import Any

CONFIG = {
    **{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 99, "max_position_embeddings": 4096},
    **{"dtype": "bfloat16"},
}
DRAFTER = {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32, "hidden_size": 64, "vocab_size": 99}
GGUF = {
    **{"general.architecture": "llama", "general.name": "Toy 1M", "general.file_type": 15},
    **{"llama.block_count": 4, "llama.embedding_length": 64, "llama.context_length": 4096, "llama.rope.freq_base": 1e4},
    **{"llama.attention.head_count": 4, "llama.attention.head_count_kv": 2},
    **{"tokenizer.ggml.tokens": ["a"] * 99, "tokenizer.ggml.scores": [0.5] * 99, "tokenizer.ggml.add_bos_token": True},
}


def folder(place: Path, config: dict[str, Any] = CONFIG, size: int = 400) -> Path:
    """A Hugging Face folder with one shard of `size` bytes of weights, each as long as its header says."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.json").write_text(json.dumps(config))
    (place / "tokenizer_config.json").write_text("{}")
    header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    (place / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
    return place


def gguf(place: Path, pairs: dict[str, Any] = GGUF, version: int = 3) -> Path:
    """A GGUF file without tensors."""
    place.parent.mkdir(parents=True, exist_ok=True)
    body = b"".join(_text(key) + _typed(value) for key, value in pairs.items())
    place.write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs)) + body)
    return place


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _typed(value: Any) -> bytes:
    if isinstance(value, list):
        kind, entries = (8, map(_text, value)) if isinstance(value[0], str) else (6, (_plain(v) for v in value))
        return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(entries)
    kind = {bool: 7, int: 4, float: 6, str: 8}[type(value)]
    return struct.pack("<I", kind) + _plain(value)


def _plain(value: Any) -> bytes:
    if isinstance(value, str):
        return _text(value)
    return struct.pack({bool: "<?", int: "<I", float: "<f"}[type(value)], value)
