"""Hidden states as llama.cpp's INT4 kernels compute them, through its own C functions in the xllamacpp wheel.

Runs inside the llama.cpp environment. llama.cpp's layer id i is the *input of layer i*, by the function that
its EAGLE-3 drafting reads from too (common/speculative.cpp, common_speculative_impl_draft_eagle3::process). The two
functions are not in its public header, so their mangled names belong to the pinned wheel and are checked first.

    python capture_llamacpp.py TARGET.gguf SEQUENCES.safetensors OUTPUT_FOLDER BOUNDARY,BOUNDARY,...
Files as capture_reference.py writes them, without `final` and `argmax`; one shard. A whole sequence is one batch.
"""

import ctypes
import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import xllamacpp.xllamacpp
from safetensors.numpy import load_file, save_file

THREADS = 2
UBATCH = 512  # the default of n_ubatch: a longer batch would be split and only its last part kept
SET = "_Z30llama_set_embeddings_layer_inpP13llama_contextjb"
GET = "_Z30llama_get_embeddings_layer_inpP13llama_contextj"


class Opaque(ctypes.Structure):
    """llama_model_params or llama_context_params: passed on by value as the library made them (larger than either)."""

    _fields_ = [("bytes", ctypes.c_uint8 * 1024)]


class Batch(ctypes.Structure):
    """llama_batch (include/llama.h)."""

    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        *((name, ctypes.c_void_p) for name in ("embd", "pos", "n_seq_id", "seq_id", "logits")),
    ]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def library() -> ctypes.CDLL:
    found = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
    p, i32, u32, flag = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_bool
    floats = ctypes.POINTER(ctypes.c_float)
    signatures = {
        "llama_log_set": (None, [LOG, p]),
        "llama_backend_init": (None, []),
        "llama_model_default_params": (Opaque, []),
        "llama_context_default_params": (Opaque, []),
        "llama_model_load_from_file": (p, [ctypes.c_char_p, Opaque]),
        "llama_init_from_model": (p, [p, Opaque]),
        "llama_model_n_embd": (i32, [p]),
        "llama_batch_get_one": (Batch, [ctypes.POINTER(i32), i32]),
        "llama_decode": (i32, [p, Batch]),
        "llama_get_memory": (p, [p]),
        "llama_memory_clear": (None, [p, flag]),
        "llama_set_n_threads": (None, [p, i32, i32]),
        SET: (None, [p, u32, flag]),
        GET: (floats, [p, u32]),
    }
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(found, name)
        except AttributeError:
            sys.exit(
                f"error: xllamacpp {version('xllamacpp')} has no function {name}; it was written for 2026.10.11549"
            )
        function.restype, function.argtypes = result, arguments
    return found


def main(gguf: Path, sequences: Path, output: Path, boundaries: list[int]) -> None:
    packed = load_file(sequences)
    ids, offsets = packed["ids"].astype(np.int32), packed["offsets"].tolist()
    longest = max(b - a for a, b in zip(offsets[:-1], offsets[1:], strict=True))
    if longest > UBATCH:
        sys.exit(f"error: a sequence of {longest} tokens does not fit one batch of {UBATCH}; leave it out")
    llama = library()
    quiet = LOG(lambda level, text, data: None)  # its debug lines run into thousands; kept alive by this name
    llama.llama_log_set(quiet, None)
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(str(gguf).encode(), llama.llama_model_default_params())
    context = model and llama.llama_init_from_model(model, llama.llama_context_default_params())
    if not context:
        sys.exit(f"error: llama.cpp could not load {gguf}")
    llama.llama_set_n_threads(context, THREADS, THREADS)
    hidden = llama.llama_model_n_embd(model)
    for i in boundaries:
        getattr(llama, SET)(context, i, True)
    found = []
    for first, last in zip(offsets[:-1], offsets[1:], strict=True):
        row = np.ascontiguousarray(ids[first:last])
        llama.llama_memory_clear(llama.llama_get_memory(context), True)
        batch = llama.llama_batch_get_one(row.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)), len(row))
        code = llama.llama_decode(context, batch)
        if code != 0:
            sys.exit(f"error: llama_decode returned {code} for a sequence of {len(row)} tokens")
        states = [np.ctypeslib.as_array(getattr(llama, GET)(context, i), (len(row), hidden)) for i in boundaries]
        found.append(np.stack(states, 1).astype(np.float16))
    output.mkdir(parents=True, exist_ok=True)
    lengths = np.diff(np.asarray(offsets, dtype=np.int64))
    save_file({"states": np.concatenate(found), "lengths": lengths}, output / "shard-0000.safetensors")
    manifest = {
        "source": "llamacpp",
        "engine_version": version("xllamacpp"),
        "boundaries": [f"input of layer {i}" for i in boundaries],
        "dtype": "float16",
        "sequences": len(lengths),
        "tokens": offsets[-1],
    }
    (output / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), [int(i) for i in sys.argv[4].split(",")])
