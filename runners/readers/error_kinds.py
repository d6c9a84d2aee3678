"""Kinds of engine deaths, recognised by messages of PyTorch, the three engines and libc, and what to do about each.

The order matters: the first kind with a matching pattern is taken, so the specific kinds come before the general ones.
"""

import re

DEAD_MID_RUN, OTHER, KILLED, MODEL_FILES, STALL = "engine dead mid-run", "other", "killed", "model files", "stall"
FAILED_REQUEST = "failed request"

_PATTERNS: dict[str, list[str]] = {
    "port in use": [
        r"[Aa]ddress already in use",
        r"Errno 98",
        r"couldn't bind HTTP server socket",
        r"[Pp]ort \d+ is (?:already )?in use",
    ],
    KILLED: [
        r"\b[Ee]xit ?code *:? -9\b",
        r"\b[Ee]xit(?:ed with)? (?:code|status):? 137\b",
        r"OOMKilled|Killed process \d+|Signal 9 \(SIGKILL\) received",
        # vLLM reports this before the exit code is known. A worker that raised has printed its traceback before.
        r"died unexpectedly \(exit code: None\)",
        r"^Killed$",
    ],
    "gpu out of memory": [
        r"(?:CUDA|HIP) out of memory",
        r"torch\.(?:cuda\.)?OutOfMemoryError",
        r"increase --mem-fraction-static",
        r"No available memory for the cache blocks",
        r"KV cache is needed, which is larger than",
        r"Free memory on device",
        r"CUBLAS_STATUS_ALLOC_FAILED",
        r"cuda(?:Malloc failed|ErrorMemoryAllocation)",
        r"(?:failed|unable) to allocate (?:CUDA|ROCm|Vulkan|Metal)\w* buffer",
    ],
    "host out of memory": [
        r"\bMemoryError\b",
        r"Cannot allocate memory",
        r"can't allocate memory",
        r"std::bad_alloc",
        r"Errno 12\b",
        r"(?:failed|unable) to allocate (?:CPU\w* |host )?buffer",
    ],
    # Before "rank time-out": the launcher gave up on engines that were still loading.
    "ready time-out": [
        r"waiting for engines? to send ?initial message",
        r"Did not receive response from front-end process within",
        r"ENGINE_READY_TIMEOUT",
    ],
    "rank time-out": [
        r"collective operation timeout",
        r"[Tt]imed out (?:waiting|after|in)\b",
        r"DistStoreError",
        r"[Ww]ait timeout",
        r"Timeout waiting for",
        r"watchdog timeout",
        r"\bTimeoutError\b",
        r"other ranks that didn't finish loading|could finish the model loading",
    ],
    "vocabulary mismatch": [r"\bvocab(?:ulary)?\b", r"\b(?:d2t|t2d)\b", r"hot_token"],
    "context overrun": [
        r"greater than the derived",
        r"maximum context length",
        r"max_model_len",
        r"exceeds the available context size",
        r"Context size has been exceeded",
        r"larger than the max context size",
        r"context_length",
        r"max_position_embeddings",
    ],
    "dtype": [r"\bdtypes?\b", r"scalar type", r"\bBFloat16\b", r"unsupported data ?type"],
    "draft load": [
        r"\b[Dd]raft(?:er)?\b.*(?:model|load|weight|layer|hidden)",
        r"speculative decoding context",
        r"(?i:eagle)",
        r"embed_and_head",
        r"layers_to_capture",
    ],
    MODEL_FILES: [
        r"Cannot find (?:the config file|any model weights)",
        r"does not appear to have a file named",
        r"model is corrupted or incomplete",
        r"SafetensorError|incomplete metadata",
        r"No such file or directory|FileNotFoundError",
        r"RepositoryNotFoundError|LocalEntryNotFoundError|GatedRepoError",
    ],
}
# One pattern a kind: an error is searched for ten of them, not for fifty.
KINDS = [(kind, re.compile("|".join(patterns))) for kind, patterns in _PATTERNS.items()]

ADVICE = {
    "port in use": "Stop the other server on that port, or give this configuration another one.",
    KILLED: "Signal 9 without a traceback is most likely the kernel's out-of-memory killer: look at "
    "`dmesg -T`, free host memory or load with fewer processes.",
    "gpu out of memory": "Lower the share of GPU memory for weights and KV cache, the cap on running "
    "requests or the context length, and check that no other process holds GPU memory.",
    "host out of memory": "Free host memory, or lower the KV cache size or the number of loading processes.",
    "ready time-out": "The launcher stopped waiting while the engine was still loading, as from slow storage: raise "
    "the ready time-out (vLLM: VLLM_ENGINE_READY_TIMEOUT_S) or put the weights on a local disk; if loading stood "
    "still, look for an error of a rank before this one.",
    "rank time-out": "One rank did not answer in time: look for the rank that stopped first, then test a "
    "two-rank all-reduce before loading the model again.",
    "vocabulary mismatch": "Check the drafter against the target: vocabulary size, the map from draft to "
    "target ids, the tokenizer it was made for.",
    "context overrun": "A context is longer than the model or the drafter says it can take: shorten the "
    "prompts or the server's context length, or allow the longer one explicitly.",
    "dtype": "Give target and drafter the same data type, and one that the hardware has.",
    "draft load": "Check the drafter: its files, the method it is for, its layer ids and hidden size "
    "against the target's.",
    MODEL_FILES: "A file of the model is missing or damaged: compare the folder with the repository it came from, the "
    "quantisation's config and each shard of the index included.",
    STALL: "Suspected stall: look for the rank that logs nothing (`py-spy dump`, `nvidia-smi`). Compiling kernels for "
    "the first time looks the same and ends by itself.",
    DEAD_MID_RUN: "The engine died while serving: everything it answered afterwards is void; look at the "
    "request it was working on.",
    FAILED_REQUEST: "The engine goes on after such an error: send the request again, and if it fails again, a "
    "shorter one, and the same to a server without speculation.",
    OTHER: "Read the log around the quoted line.",
}


def kind_of(text: str) -> str:
    """The kind of an error message; "other" when no pattern matches."""
    for kind, pattern in KINDS:
        if pattern.search(text):
            return kind
    return OTHER
