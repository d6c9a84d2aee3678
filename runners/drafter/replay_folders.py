"""Replay of any EAGLE-3 head on any target that fits this machine: text and states are made on the spot.

The target answers a few chat prompts with transformers in fp32 (scripts/reference_greedy.py), its states are captured
for them (scripts/capture_reference.py), and the head is replayed with one thing changed at a time (scripts/what_if.py).
"""

import math
import tempfile
from pathlib import Path
from typing import Any

import psutil

from runners.core.checkpoint import Checkpoint, aux_layer_ids, refuse_pickles, rope_base, rope_scaling
from runners.core.errors import UserError
from runners.core.progress import Progress, quiet
from runners.drafter import compatibility, packed_sequences
from runners.drafter.layouts import BYTES, Layout
from runners.engines import environments
from runners.profiles import prompts
from runners.serve import scripts

PROMPTS, ANSWER = 8, 64  # prompts, and tokens of each answer: a minute on two cores for a target of 0.1 B weights
BATCH = 4
ROOM = 1.3  # activations, and one copy while the weights are read
# fp32 bytes for one byte on disk, by dtype: F16 doubles, four bits packed into I32 or U8 become eight times as large.
PACKED = {"I32": 8, "U8": 8}
FP32 = 4
# Flags of a head that scripts/eagle3.py does not have, and sizes that it must be told.
UNKNOWN = ("norm_before_fc", "fc_norm", "norm_output", "attention_bias", "mlp_bias", "bias")
SIZES = ("num_attention_heads", "intermediate_size", "vocab_size")
Alternatives = dict[str, dict[str, Any]]  # scripts/what_if.py's result


def what_if(target: Checkpoint, head: Layout, k: int, say: Progress) -> tuple[Alternatives, str]:
    """(the replays, "") or ({}, why there are none here and what it would take)."""
    reason = head_reason(head, compatibility.sizes_of(target.config)) or machine_reason(target)
    if reason:
        return {}, reason
    try:
        refuse_pickles(target.folder, "target")
        with tempfile.TemporaryDirectory() as work:
            return _replays(target, head, k, Path(work), say), ""
    except UserError as error:
        return {}, f"{error}"


def head_reason(head: Layout, target: dict[str, Any]) -> str:
    """Why replay does not know this head; "" where it does. target: its text config.

    Replay has the one layer of scripts/eagle3.py: a Llama layer, plain RoPE, the target's hidden size.
    """
    if head.method != "eagle3":
        return "replay follows EAGLE-3 heads only"
    config, layers = head.config, target["num_hidden_layers"]
    unknown = [key for key in UNKNOWN if config.get(key)]
    untold = [key for key in SIZES if not config.get(key)]
    ids = aux_layer_ids(config, layers)
    kinds = {kind for kind, shape in head.tensors.values() if len(shape) == 2} - {"F32", "F16", "BF16", "F64"}
    reasons = (
        (not head.tensors, "its weights are not safetensors; convert them"),
        (head.mla, "replay knows a Llama layer and no MLA: serve it at C=1 and give the log with --log"),
        (head.layers != 1 or not head.uses_aux, "replay knows a head of one layer that takes several states"),
        (bool(unknown), f"replay does not know {', '.join(unknown)}"),
        (bool(untold), f"the drafter's config has no {', '.join(untold)}"),
        (bool(kinds), f"replay does not know weights of {', '.join(sorted(kinds))}"),
        (rope_scaling(config) != "none", f"replay does not know the RoPE scaling {rope_scaling(config)}"),
        (head.hidden_size != target["hidden_size"], "replay needs a head of the target's hidden size"),
        (head.has("layers.0.self_attn.q_norm"), "replay does not know the norms of queries and keys"),
        (min(ids) < 0 or max(ids) >= layers, f"layer ids {ids} name a state that is no layer's input"),
    )
    return next((words for holds, words in reasons if holds), "")


def machine_reason(target: Checkpoint) -> str:
    """Why the target cannot be asked here, and what that would take; "" where it can."""
    if not target.tensors:
        return "the target's weights are not safetensors; convert them"
    missing = [name for name in ("tokenizer.json", "tokenizer_config.json") if not (target.folder / name).is_file()]
    if missing:
        return f"the target's folder has no {missing[0]}; copy the whole folder"
    needed, free = fp32_bytes(target) * ROOM / 2**30, psutil.virtual_memory().available / 2**30
    if needed > free:
        return (
            f"the target in fp32 takes about {needed:.1f} GiB of memory, {free:.1f} are free; run this on a machine "
            "that has them, or serve it at C=1 and give the log with --log"
        )
    if not environments.ready("reference"):
        return "this needs the reference environment (about 1 GB): `specverdict setup --engine reference` makes it"
    return ""


def fp32_bytes(target: Checkpoint) -> int:
    """Bytes of its weights in fp32, in which the reference model runs on the CPU."""
    total = 0.0
    for kind, shape in target.tensors.values():
        size = BYTES.get(kind, 2)
        total += math.prod(shape) * size * PACKED.get(kind, FP32 / size)
    return round(total)


def request_of(head: Layout) -> dict[str, Any]:
    """The head's config as scripts/eagle3.py takes it: flat, with engines' defaults written out."""
    config = head.config
    heads, hidden = config["num_attention_heads"], head.hidden_size
    defaults = {
        "hidden_size": hidden,
        "num_key_value_heads": config.get("num_key_value_heads") or heads,
        "head_dim": config.get("head_dim") or (hidden or 0) // heads,
        "rope_theta": rope_base(config) or compatibility.DEFAULT_ROPE_BASE,
        "rms_norm_eps": config.get("rms_norm_eps") or 1e-6,
        "max_position_embeddings": config.get("max_position_embeddings") or 2048,
        "draft_vocab_size": config.get("draft_vocab_size") or config["vocab_size"],
        # vLLM 0.32 takes this for granted in the speculators layout (configs/speculators/algos.py).
        "norm_before_residual": config.get("norm_before_residual", bool(config.get("speculators_model_type"))),
    }
    return config | defaults


def _replays(target: Checkpoint, head: Layout, k: int, work: Path, say: Progress) -> Alternatives:
    config = compatibility.sizes_of(target.config)
    layers, ids = config["num_hidden_layers"], aux_layer_ids(head.config, config["num_hidden_layers"])
    held = sorted({i + s for i in ids for s in (-1, 0, 1) if 0 <= i + s < layers})
    sequences, states = work / "answers.safetensors", work / "states"
    say(f"replay: the target answers {PROMPTS} prompts in fp32")
    packed_sequences.pack(_answers(target, k), sequences)
    say("replay: its states are captured")
    scripts.run_script("capture_reference", [target.folder, sequences, states, ",".join(map(str, held))], quiet)
    say("replay: the head drafts from them, with one thing changed at a time")
    request = {
        "target": str(target.folder),
        "drafter": str(head.folder),
        "drafter_config": request_of(head),
        "target_rope_theta": rope_base(config),
        "sequences": str(sequences),
        "states": str(states),
        "k": k,
        "output_tokens": ANSWER,
        "layer_ids": ids,
        "held": held,
    }
    found: Alternatives = scripts.ask_script("what_if", request)
    return found


def _answers(target: Checkpoint, k: int) -> list[dict[str, Any]]:
    """The target's own greedy answers, each up to its end of text; UserError where all end at once."""
    asked = [{"id": p.id, "messages": list(p.messages)} for p in prompts.load("chat").take(PROMPTS)]
    request = {"prompts": asked, "max_new_tokens": ANSWER, "batch": BATCH}
    found = scripts.ask_script("reference_greedy", request, [target.folder])
    ends = compatibility.sizes_of(target.config).get("eos_token_id")
    ends = set(ends if isinstance(ends, list) else [ends])
    rows = []
    for name, tokens in found["tokens"].items():
        answer = tokens[: next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))]
        if len(answer) > k + 2:  # a shorter one has no whole chain
            rows.append({"prompt_tokens": found["prompt_tokens"][name], "answer_tokens": answer, "part": ""})
    if not rows:
        raise UserError("every answer of the target ends after a few tokens; give the folder of a chat model.")
    return rows
