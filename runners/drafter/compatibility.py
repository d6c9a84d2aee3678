"""Does a drafter fit its target? What the files alone show, in seconds, without an engine.

Each check is for a fault that somebody reported in public (book, chapter Alignment). Names and shapes of tensors are
read from the safetensors headers; only the small vocabulary maps and some rows of fc are loaded.
"""

from collections.abc import Iterator
from typing import Any

from runners.core.checkpoint import Checkpoint, rope_base, rope_scaling, shard_bytes, text_config
from runners.core.errors import UserError
from runners.core.finding import LEVELS, Finding
from runners.drafter import draft_model_checks, head_checks, layouts, mtp_checks, rounded_weights, vocabulary_map
from runners.drafter.layouts import Layout

# Keys of a drafter's config that engines are known to read (vllm/model_executor/models/llama_eagle3.py,
# deepseek_eagle3.py and transformers_utils/configs; sglang/srt/models/llama_eagle3.py), that transformers writes into
# any config, or that a trainer writes for itself (speculators, ModelOpt, AngelSlim). The target's keys are known, too.
KNOWN_KEYS = {
    *("architectures", "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_parameters", "rope_scaling"),
    *("max_position_embeddings", "vocab_size", "draft_vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"),
    *("tie_word_embeddings", "attention_bias", "attention_dropout", "mlp_bias", "torch_dtype", "dtype", "use_cache"),
    *("initializer_range", "pretraining_tp", "transformers_version", "eagle_config", "target_hidden_size", "bias"),
    *("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "num_aux_hidden_states", "logit_scale"),
    *("quantization_config", "target_model_type", "eagle_aux_hidden_state_layer_ids", "auto_map", "name_or_path"),
    *("sliding_window", "use_sliding_window", "max_window_layers", "layer_types", "return_dict", "is_decoder"),
    *("speculators_model_type", "speculators_version", "speculators_config", "has_no_defaults_at_init"),
    *("embed_requires_grad", "enable_sp_ulysses", "base_model_ep_plan", "mask_token_id", "pard_token", "ptd_token_id"),
    *("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "modal_type"),
    *("num_eagle_features", "has_lm_head", "torchscript", "output_attentions", "output_hidden_states"),
}
SIZES = ("hidden_size", "vocab_size", "num_hidden_layers")
DEFAULT_ROPE_BASE = 10_000  # what transformers, and so each engine, takes where a config has no rope_theta


def check(
    drafter: Checkpoint, target: dict[str, Any], context_length: int | None = None, method: str = "eagle3"
) -> list[Finding]:
    """Every finding, blockers first.

    target: the target's config.json. context_length: the longest request's tokens. method: by which it is to draft.

    UserError when the target's config does not tell its sizes.
    """
    head = layouts.of(drafter)
    found = check_layout(head, sizes_of(target), context_length)
    if head.method != method:
        words = f"by its files it is a drafter of another method: {head.title} ({head.method}), not {method}"
        found.append(Finding("warning", words, "set the method that it was made for"))
    return in_order(found)


def check_layout(
    head: Layout, target: dict[str, Any], context_length: int | None = None, weights: Checkpoint | None = None
) -> list[Finding]:
    """`check` of a drafter whose layout is known. target: as `sizes_of` returns it. weights: the target's own.

    Draft models are compared with the target's tensors and tokenizer as well, where `weights` is given.
    """
    found = list(_files(head))
    if any(f.level == "blocker" for f in found):
        return found  # what is in a damaged file cannot be looked at
    found += _method(head, target, weights)
    if head.method != "mtp":
        found += [*_limits(head, target, context_length), *_rope(head, target), *_numbers(head)]
    return in_order(found)


def in_order(found: list[Finding]) -> list[Finding]:
    """Blockers first, then warnings, then notes."""
    return sorted(found, key=lambda f: LEVELS.index(f.level))


def sizes_of(target: dict[str, Any]) -> dict[str, Any]:
    """The target's text config; UserError when it lacks a size that every check needs."""
    config = text_config(target)
    missing = [key for key in SIZES if not isinstance(config.get(key), int)]
    if missing:
        raise UserError(f"The target's config.json has no {missing[0]}; give the folder of the whole target.")
    return config


def _method(head: Layout, target: dict[str, Any], weights: Checkpoint | None) -> Iterator[Finding]:
    if head.method == "eagle3":
        yield from head_checks.eagle3(head, target)
        yield from vocabulary_map.check(head, target)
        yield from rounded_weights.check(head)
        yield from _keys(head, target)
    elif head.method == "eagle":
        yield from head_checks.eagle(head, target)
        yield from vocabulary_map.check(head, target)
    elif head.method == "mtp":
        yield from mtp_checks.check(head, target)
    elif head.method == "draft_model":
        yield from draft_model_checks.check(head, target, weights)
    else:
        yield from vocabulary_map.check(head, target)
        yield Finding("note", f"of {head.title} only files, vocabulary, limits and RoPE were looked at", "")


def _files(head: Layout) -> Iterator[Finding]:
    if head.pickles:
        words = f"its weights are pickles ({', '.join(head.pickles)}), which are not read: only its config was compared"
        yield Finding("warning", words, "convert it to safetensors to have its tensors checked")
    for path in sorted(set(head.files.values())):
        size, wanted = path.stat().st_size, shard_bytes(path)
        if wanted is not None and size != wanted:
            words = f"{path.name} has {size:,} bytes, its header says {wanted:,}: it is cut off or still being written"
            yield Finding("blocker", words, "copy it again")


def _limits(head: Layout, target: dict[str, Any], context_length: int | None) -> Iterator[Finding]:
    own = head.config.get("max_position_embeddings")
    longest = context_length or target.get("max_position_embeddings")
    if own and longest and own < longest:
        yield Finding(
            "warning",
            f"the drafter's limit is {own:,} positions, but requests may have {longest:,}",
            "SGLang needs SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1; acceptance beyond the limit is unknown",
            "short-context",
        )


def _rope(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    if head.method == "draft_model":
        return  # a model of its own: nothing of it comes from the target
    own, theirs = rope_base(head.config), rope_base(target)
    if own and theirs and own != theirs:
        words = f"its RoPE base is {own:,.0f}, but the target's is {theirs:,.0f}"
        yield Finding("warning", words, "correct rope_theta, unless it was trained with this one", "rope-base")
    elif own is None and theirs and theirs != DEFAULT_ROPE_BASE:
        words = f"its config has no rope_theta: engines take {DEFAULT_ROPE_BASE:,}, but the target's is {theirs:,.0f}"
        yield Finding("warning", words, "write down the base that it was trained with", "rope-base")
    scaled = rope_scaling(head.config), rope_scaling(target)
    if scaled[0] != scaled[1]:
        words = f"its RoPE scaling is {scaled[0]}, the target's {scaled[1]}"
        yield Finding("note", words, "it must be as it was while training", "rope-base")


def _numbers(head: Layout) -> Iterator[Finding]:
    if head.method != "draft_model" and head.config.get("quantization_config"):
        words = "its config has a quantization_config, perhaps copied from the target's"
        yield Finding("warning", words, "remove it, unless its weights are quantised", "int4")
    kinds = {kind for kind, shape in head.tensors.values() if len(shape) == 2}
    if len(kinds) > 1:
        yield Finding("note", f"its matrices have several dtypes ({', '.join(sorted(kinds))})", "")


def _keys(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    """Keys that neither an engine nor the target knows: a trainer's own, which perhaps changed what was trained."""
    given = {key for key, value in head.config.items() if value not in (None, False) and not key.startswith("_")}
    unknown = sorted(given - KNOWN_KEYS - set(target))
    if unknown:
        words = f"its config has keys that no engine is known to read: {', '.join(unknown)}"
        fix = "engines ignore them without a warning; check whether the training used them"
        yield Finding("warning", words, fix, "norm-flag")
