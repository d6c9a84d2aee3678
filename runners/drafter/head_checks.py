"""Does a head fit its target's states? Shapes, LM head, norms and layer ids of EAGLE and EAGLE-3 heads."""

from collections.abc import Iterator
from typing import Any

from runners.core.checkpoint import LAYER_IDS, aux_count, aux_layer_ids, named_layer_ids
from runners.core.finding import Finding
from runners.drafter.layouts import INPUTS, Layout
from runners.engines import sglang

# A flag of the config and the tensors that it goes with (llama_eagle3.py in vLLM 0.32).
NORMS = (("norm_before_fc", "input_norm."), ("fc_norm", "fc_norm."))


def eagle3(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    """Findings of an EAGLE-3 head: what it takes in, its layer, its LM head, its norms and its layer ids."""
    if head.uses_aux:
        yield from _fc(head, target)
    else:
        yield Finding("note", "use_aux_hidden_state is false: it takes the target's last state alone", "")
    yield from _attention(head)
    yield from _layers(head)
    yield from _shared(head, target)
    yield from _lm_head(head, target)
    yield from _norms(head)
    yield from _boundaries(head, target)


def eagle(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    """Findings of an EAGLE head of the first or second kind: it takes the embedding and the target's last state."""
    fc, hidden = head.shape("fc.weight"), target["hidden_size"]
    if fc is not None and fc[1] != 2 * hidden:
        words = f"fc takes {fc[1]} inputs, but an embedding and one state of the target have {2 * hidden}"
        yield Finding("blocker", words, "use a drafter of this target")
    elif fc is None and head.tensors:
        words = "fc.weight is missing, which joins the embedding and the target's last state"
        yield Finding("blocker", words, "export the drafter again")
    yield from _layers(head)
    yield from _shared(head, target)


def _fc(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    hidden, named, fc = target["hidden_size"], head.config.get("target_hidden_size"), head.shape("fc.weight")
    if named and named != hidden:
        words = f"it was made for states of size {named:,}, but this target's have {hidden:,}"
        yield Finding("blocker", words, "use a drafter of this target")
    count = aux_count(head.config)
    if fc is None and head.has("fc."):
        yield Finding("note", "fc is stored quantised: its shape was not compared", "")
    elif fc is None and head.tensors:
        words = "fc.weight is missing, which joins the target's aux states"
        yield Finding("blocker", words, "export the drafter again")
    elif fc is not None and fc[1] != count * hidden:
        words = f"fc takes {fc[1]} inputs, but {count} aux states of the target have {count * hidden}"
        fix = "use a drafter of this target, or correct the number of aux states in its config"
        yield Finding("blocker", words, fix)
    if count != 3 and _only_at_the_top(head):
        words = f"vLLM 0.32 counts no layer ids at the top of the config: it expects 3 aux states, not {count}"
        yield Finding("warning", words, f"set num_aux_hidden_states to {count}, beside hidden_size")


def _only_at_the_top(head: Layout) -> bool:
    """Whether nothing but layer ids at the top of the config tells how many aux states it takes."""
    nested = head.config.get("eagle_config")
    counted = head.config.get("num_aux_hidden_states") or (isinstance(nested, dict) and nested.get(LAYER_IDS))
    return bool(head.config.get(LAYER_IDS)) and not counted


def _attention(head: Layout) -> Iterator[Finding]:
    own = head.hidden_size
    shapes = {name: head.shape(f"layers.0.self_attn.{name}.weight") for name in INPUTS}
    name, shape = next(((n, s) for n, s in shapes.items() if s is not None), ("", None))
    if shape is not None and own and shape[1] != 2 * own:
        words = f"{name} takes {shape[1]} inputs, not 2 x {own}: this is not an EAGLE-3 layer"
        yield Finding("blocker", words, "see its card")


def _layers(head: Layout) -> Iterator[Finding]:
    said = head.config.get("num_hidden_layers")
    if said and head.layers and said != head.layers:
        words = f"its config says num_hidden_layers {said}, but its weights hold {head.layers}"
        yield Finding("warning", words, "correct num_hidden_layers: engines make as many layers as it says")


def _shared(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    """The target's embedding serves where the head has none of its own: the sizes must then agree."""
    own, hidden = head.hidden_size, target["hidden_size"]
    if head.tensors and own and own != hidden and not head.has("embed_tokens."):
        words = f"its hidden size is {own:,}, the target's {hidden:,}, and it has no embedding of its own"
        yield Finding("blocker", words, "export the drafter with embed_tokens")


def _lm_head(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    whole = target["vocab_size"]
    size = head.config.get("draft_vocab_size") or head.config.get("vocab_size") or whole
    rows = head.shape("lm_head.weight")
    if rows is not None and rows[0] != size:
        words = f"lm_head has {rows[0]} rows, but the config says {size}"
        yield Finding("blocker", words, f"set draft_vocab_size to {rows[0]}, if that is its draft vocabulary")
    if rows is not None or not head.tensors:
        return
    if head.has("lm_head."):
        yield Finding("note", "lm_head is stored quantised: its shape was not compared", "")
    elif head.config.get("tie_word_embeddings"):
        yield Finding("note", "no lm_head.weight: tied to the embedding", "")
    elif size != whole:
        yield Finding(
            "blocker",
            "lm_head.weight is missing and the draft vocabulary is smaller than the target's: an engine draws the head "
            "at random or stops",
            "export the drafter with its LM head",
            "random-head",
        )
    elif head.config.get("draft_vocab_size"):
        # sglang#27908: accept length 1.00 with such a checkpoint.
        words = "no lm_head.weight, but draft_vocab_size is set: SGLang draws a head at random, vLLM takes the target's"
        yield Finding("warning", words, "take draft_vocab_size out, or copy the target's lm_head", "random-head")
    else:
        yield Finding("note", "no lm_head.weight: the target's head is used", "")


def _norms(head: Layout) -> Iterator[Finding]:
    nested = head.config.get("eagle_config")
    for key, tensors in NORMS if head.tensors else ():
        flagged = bool(head.config.get(key) or (isinstance(nested, dict) and nested.get(key)))
        if flagged and not head.has(tensors):
            words = f"{key} is set, but there is no tensor {tensors}weight"
            yield Finding("blocker", words, "export the drafter again", "norm-flag")
        elif head.has(tensors) and not flagged:
            words = f"it holds {tensors}weight, but {key} is not set: engines leave that norm out"
            yield Finding("warning", words, f"set {key}: true", "norm-flag")
    for key in ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output"):
        if head.config.get(key):
            words = f"{key} is set: only an engine that reads it serves this drafter correctly"
            yield Finding("note", words, "", "norm-flag")


def _boundaries(head: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    layers, ids = target["num_hidden_layers"], named_layer_ids(head.config)
    if not head.uses_aux:
        return
    if ids is None:
        default = aux_layer_ids(head.config, layers)
        yield Finding("note", f"no layer ids in the config: engines take the inputs of layers {default}", "")
        return
    if max(ids) >= layers + 1 or min(ids) < 0:
        yield Finding("blocker", f"layer ids {ids} do not fit a target of {layers} layers", "correct the config")
    more = sglang.boundaries(ids, "0.5.12", "deepseek_v2")
    rule = f"to 0.5.12 adds one ({more}), later releases only where the first id is 1"
    if target.get("model_type") == "llama":
        rule = f"adds one ({more})"
    words = f"layer ids {ids}: inputs of layers {ids} in vLLM and llama.cpp; SGLang {rule}"
    yield Finding("note", words, "", "boundary+1")
    usual = aux_layer_ids({}, layers)
    if ids == [i - 1 for i in usual]:
        words = f"layer ids {ids} are the usual {usual} less one, as SGLang needs them, which adds one; vLLM adds none"
        yield Finding("warning", words, "raise each by one to serve it with vLLM", "boundary-1")
    if head.config.get(LAYER_IDS):
        words = "its layer ids stand at the top of the config, where vLLM reads them; SGLang, as far as seen, reads "
        yield Finding("note", words + "those in eagle_config", "write them into eagle_config too", "boundary+1")
