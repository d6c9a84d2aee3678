"""Does a drafter fit its target? What the files alone show, in seconds, without an engine.

Each check is for a fault that somebody reported in public (book, chapter Alignment). Names and shapes of tensors are
read from the safetensors header; only the small vocabulary maps and some rows of fc are loaded.
"""

from typing import Any

import numpy as np
from safetensors import safe_open

from runners.core.checkpoint import Checkpoint, aux_count, aux_layer_ids, named_layer_ids, rope_base, text_config
from runners.core.finding import LEVELS, Finding
from runners.engines import sglang

# Keys of an EAGLE-3 config that engines are known to read (vllm/model_executor/models/llama_eagle3.py and
# transformers_utils/configs/eagle.py; sglang/srt/models/llama_eagle3.py) or that transformers writes into any config.
KNOWN_KEYS = {
    *("architectures", "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_parameters", "rope_scaling"),
    *("max_position_embeddings", "vocab_size", "draft_vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"),
    *("tie_word_embeddings", "attention_bias", "attention_dropout", "mlp_bias", "torch_dtype", "dtype", "use_cache"),
    *("initializer_range", "pretraining_tp", "transformers_version", "eagle_config", "target_hidden_size"),
    *("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "num_aux_hidden_states", "logit_scale"),
    *("quantization_config", "target_model_type", "eagle_aux_hidden_state_layer_ids"),
}


def check(drafter: Checkpoint, target: dict[str, Any], context_length: int | None = None) -> list[Finding]:
    """Every finding, blockers first. target: the target's config.json. context_length: the longest request's tokens."""
    target = text_config(target)
    found = [
        *_shapes(drafter, target),
        *_head(drafter, target),
        *_map(drafter, target),
        *_limits(drafter, target, context_length),
        *_numbers(drafter, target),
        *_rounding(drafter),
        *_keys(drafter),
        *_boundaries(drafter, target),
    ]
    return sorted(found, key=lambda f: LEVELS.index(f.level))


def _shape(drafter: Checkpoint, ending: str) -> list[int] | None:
    return next((shape for name, (_, shape) in drafter.tensors.items() if name.endswith(ending)), None)


def _shapes(d: Checkpoint, target: dict[str, Any]):
    hidden, own = target["hidden_size"], d.config.get("hidden_size")
    fc = _shape(d, "fc.weight")
    wanted = aux_count(d.config) * hidden
    if fc is None:
        yield Finding(
            "blocker", "fc.weight is missing, which joins the target's aux states", "export the drafter again"
        )
    elif fc[1] != wanted:
        yield Finding(
            "blocker",
            f"fc takes {fc[1]} inputs, but {aux_count(d.config)} aux states of the target have {wanted}",
            "use a drafter of this target, or correct the number of aux states in its config",
        )
    q = _shape(d, "self_attn.q_proj.weight")
    if q is not None and own and q[1] != 2 * own:
        yield Finding(
            "blocker", f"q_proj takes {q[1]} inputs, not 2 x {own}: this is not an EAGLE-3 layer", "see its card"
        )


def _head(d: Checkpoint, target: dict[str, Any]):
    size = d.config.get("draft_vocab_size") or d.config.get("vocab_size")
    head = _shape(d, "lm_head.weight")
    if head is None and size != target["vocab_size"]:
        yield Finding(
            "blocker",
            "lm_head.weight is missing and the draft vocabulary is smaller than the target's: an engine draws the head "
            "at random or stops",
            "export the drafter with its LM head",
            "random-head",
        )
    elif head is None:
        yield Finding("note", "no lm_head.weight: the target's head is used", "")
    elif head[0] != size:
        yield Finding("blocker", f"lm_head has {head[0]} rows, but the config says {size}", "correct draft_vocab_size")


def _map(d: Checkpoint, target: dict[str, Any]):
    size, whole = d.config.get("draft_vocab_size"), target["vocab_size"]
    if not size or size == whole:
        return
    if "d2t" not in d.tensors:
        yield Finding("blocker", f"the draft vocabulary has {size} tokens and no d2t map", "export d2t", "wrong-map")
        return
    with safe_open(d.folder / "model.safetensors", "np") as weights:
        d2t = weights.get_tensor("d2t").astype(np.int64)
        t2d = weights.get_tensor("t2d") if "t2d" in d.tensors else None
    if len(d2t) != size:
        yield Finding("blocker", f"d2t has {len(d2t)} entries for {size} draft tokens", "export it again", "wrong-map")
        return
    ids = d2t + np.arange(size)
    if ids.min() < 0 or ids.max() >= whole:
        words = "d2t leads outside the target's vocabulary; it may hold target ids instead of offsets"
        yield Finding("blocker", words, "store target id minus draft id", "wrong-map")
    elif len(set(ids.tolist())) != size:
        yield Finding("blocker", "d2t names the same target token twice", "export it again", "wrong-map")
    elif (np.diff(ids) <= 0).any():
        yield Finding(
            "warning",
            "d2t does not ascend: the map may belong to another vocabulary",
            "compare it with the LM head's rows",
            "wrong-map",
        )
    if t2d is not None and not np.array_equal(np.flatnonzero(t2d), np.sort(ids)):
        yield Finding("warning", "t2d and d2t name different tokens", "export both again", "wrong-map")


def _limits(d: Checkpoint, target: dict[str, Any], context_length: int | None):
    own = d.config.get("max_position_embeddings")
    longest = context_length or target.get("max_position_embeddings")
    if own and longest and own < longest:
        yield Finding(
            "warning",
            f"the drafter's limit is {own:,} positions, but requests may have {longest:,}",
            "SGLang needs SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1; acceptance beyond the limit is unknown",
            "short-context",
        )


def _numbers(d: Checkpoint, target: dict[str, Any]):
    own, theirs = rope_base(d.config), rope_base(target)
    if own and theirs and own != theirs:
        words = f"its RoPE base is {own:,.0f}, but the target's is {theirs:,.0f}"
        yield Finding("warning", words, "correct rope_theta, unless it was trained with this one", "rope-base")
    if d.config.get("quantization_config"):
        yield Finding(
            "warning", "its config has a quantization_config, perhaps copied from the target's", "remove it", "int4"
        )
    kinds = {kind for name, (kind, shape) in d.tensors.items() if len(shape) == 2}
    if len(kinds) > 1:
        yield Finding("note", f"its matrices have several dtypes ({', '.join(sorted(kinds))})", "")


def _rounding(d: Checkpoint):
    """Weights that were once rounded to fewer bits: a block has few different values, or the low bits are all zero."""
    name = next(
        (n for n, (kind, shape) in d.tensors.items() if n.endswith("fc.weight") and kind in ("F16", "F32")), None
    )
    if name is None:
        return
    with safe_open(d.folder / "model.safetensors", "np") as weights:
        rows = np.ascontiguousarray(weights.get_slice(name)[: min(64, d.tensors[name][1][0])])
    blocks = rows[:, : rows.shape[1] // 32 * 32].reshape(-1, 32)
    if blocks.size and max(len(np.unique(block)) for block in blocks) <= 16:
        words = "its weights take at most 16 values in each block of 32: they were rounded to four bits"
        yield Finding("warning", words, "serve the drafter in the precision it was trained in", "int4")
    elif rows.dtype == np.float16 and not (rows.astype(np.float32).view(np.uint32) & 0xFFFF).any():
        yield Finding("warning", "its float16 weights hold bfloat16 values", "usually harmless", "bfloat16")


def _keys(d: Checkpoint):
    unknown = sorted(set(d.config) - KNOWN_KEYS)
    if unknown:
        words = f"its config has keys that no engine is known to read: {', '.join(unknown)}"
        yield Finding(
            "warning", words, "engines ignore them without a warning; check whether the training used them", "norm-flag"
        )
    for key in ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output"):
        if d.config.get(key):
            yield Finding(
                "note", f"{key} is set: only an engine that reads it serves this drafter correctly", "", "norm-flag"
            )


def _boundaries(d: Checkpoint, target: dict[str, Any]):
    layers = target["num_hidden_layers"]
    ids = named_layer_ids(d.config) or d.config.get("eagle_aux_hidden_state_layer_ids")
    if ids is None:
        default = aux_layer_ids(d.config, layers)
        yield Finding("note", f"no layer ids in the config: engines take the inputs of layers {default}", "")
        return
    if max(ids) >= layers + 1 or min(ids) < 0:
        yield Finding("blocker", f"layer ids {ids} do not fit a target of {layers} layers", "correct the config")
    later = sglang.boundaries(ids, "0.5.12", "deepseek_v2")
    yield Finding(
        "note",
        f"layer ids {ids}: inputs of layers {ids} in vLLM and llama.cpp; SGLang to 0.5.12 adds one ({later}), later "
        "releases only where the first id is 1",
        "",
        "boundary+1",
    )
