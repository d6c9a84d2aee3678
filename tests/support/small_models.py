"""Made-up targets and drafters of a few numbers, as folders: what the checks of model files are tested on."""

import json

import numpy as np
from safetensors.numpy import save_file

HIDDEN, VOCABULARY, LAYERS, DRAFT = 8, 40, 30, 10

TARGET = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": 12,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": VOCABULARY,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": 128,
    "rope_theta": 1e6,
    "tie_word_embeddings": True,
}
HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": 12,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_hidden_layers": 1,
    "vocab_size": VOCABULARY,
    "draft_vocab_size": DRAFT,
    "max_position_embeddings": 128,
    "rope_theta": 1e6,
    "tie_word_embeddings": False,
}


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def layer(prefix, inputs, hidden=HIDDEN):
    """A Llama layer's tensors; inputs: how many attention takes in."""
    return {
        f"{prefix}self_attn.q_proj.weight": numbers(hidden, inputs),
        f"{prefix}self_attn.k_proj.weight": numbers(hidden // 2, inputs),
        f"{prefix}self_attn.v_proj.weight": numbers(hidden // 2, inputs),
        f"{prefix}self_attn.o_proj.weight": numbers(hidden, hidden),
        f"{prefix}mlp.gate_proj.weight": numbers(12, hidden),
        f"{prefix}mlp.up_proj.weight": numbers(12, hidden),
        f"{prefix}mlp.down_proj.weight": numbers(hidden, 12),
        f"{prefix}input_layernorm.weight": np.ones(hidden, np.float32),
        f"{prefix}post_attention_layernorm.weight": np.ones(hidden, np.float32),
    }


def target(folder, layers=LAYERS, config=None, more=None, **shards):
    """A Llama of `layers` layers. config: keys changed; more: tensors added."""
    tensors = {"model.embed_tokens.weight": numbers(VOCABULARY, HIDDEN)}
    tensors["model.norm.weight"] = np.ones(HIDDEN, np.float32)
    for i in range(layers):
        tensors |= layer(f"model.layers.{i}.", HIDDEN)
    return write(folder, TARGET | {"num_hidden_layers": layers} | (config or {}), tensors | (more or {}), **shards)


def head_tensors(prefix="midlayer.", aux=3, draft=DRAFT):
    """An EAGLE-3 head's tensors for every fourth token of the vocabulary."""
    ids = np.arange(draft) * (VOCABULARY // draft)
    return layer(prefix, 2 * HIDDEN) | {
        f"{prefix}hidden_norm.weight": np.ones(HIDDEN, np.float32),
        "fc.weight": numbers(HIDDEN, aux * HIDDEN),
        "norm.weight": np.ones(HIDDEN, np.float32),
        "lm_head.weight": numbers(draft, HIDDEN),
        "d2t": ids - np.arange(draft),
        "t2d": np.isin(np.arange(VOCABULARY), ids),
    }


def head(folder, config=None, tensors=None, **shards):
    """An EAGLE-3 head in a folder. config: keys changed; tensors: in place of all."""
    return write(folder, HEAD | (config or {}), head_tensors() if tensors is None else tensors, **shards)


def speculators(folder, config=None, layer_config=None, tensors=None):
    """The same in the layout that speculators writes: the layer's keys one level down."""
    below = {k: v for k, v in HEAD.items() if k not in ("architectures", "draft_vocab_size")} | (layer_config or {})
    above = {
        "architectures": ["Eagle3DraftModel"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.5",
        "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "a/target"}},
        "draft_vocab_size": DRAFT,
        "norm_before_residual": False,
        "target_hidden_size": None,
        "has_no_defaults_at_init": False,
        "tie_word_embeddings": False,
        "transformer_layer_config": below,
    }
    own = head_tensors("layers.0.") | {"embed_tokens.weight": numbers(VOCABULARY, HIDDEN)}
    return write(folder, above | (config or {}), own if tensors is None else tensors)


def write(folder, config, tensors, shards=1):
    """config.json and one safetensors file or several with their index; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    names = sorted(tensors)
    place = {name: f"model-{i % shards + 1:05d}-of-{shards:05d}.safetensors" for i, name in enumerate(names)}
    for file in sorted(set(place.values())):
        save_file({n: tensors[n] for n in names if place[n] == file}, folder / file, metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": place}))
    return folder
