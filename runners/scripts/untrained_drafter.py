"""An EAGLE-3 drafter with random weights: the control whose accept length must read exactly 1.00.

Runs inside the reference environment. Shapes follow the target (EAGLE-3, Li et al. 2025; the layer takes
token embedding and fused hidden state side by side, hence 2 x hidden). The same weights are written in
both forms: a Hugging Face folder for vLLM and SGLang, a GGUF file for llama.cpp.

    python untrained_drafter.py TARGET_FOLDER TARGET.gguf OUTPUT_FOLDER SEED
"""

import json
import sys
from pathlib import Path

import numpy as np
from drafter_to_gguf import LAYER, convert
from safetensors.numpy import save_file

STD = 0.02  # the target's own initializer_range


def main(target_folder: Path, target_gguf: Path, output: Path, seed: int) -> None:
    target = json.loads((target_folder / "config.json").read_text())
    hidden, inner, vocab = target["hidden_size"], target["intermediate_size"], target["vocab_size"]
    heads, kv_heads, head = target["num_attention_heads"], target["num_key_value_heads"], target["head_dim"]
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape, dtype=np.float32) * STD).astype(np.float16)

    def ones() -> np.ndarray:
        return np.ones(hidden, dtype=np.float16)

    weights = {
        "fc.weight": random(hidden, 3 * hidden),
        f"{LAYER}input_layernorm.weight": ones(),
        f"{LAYER}hidden_norm.weight": ones(),
        f"{LAYER}post_attention_layernorm.weight": ones(),
        f"{LAYER}self_attn.q_proj.weight": random(heads * head, 2 * hidden),
        f"{LAYER}self_attn.k_proj.weight": random(kv_heads * head, 2 * hidden),
        f"{LAYER}self_attn.v_proj.weight": random(kv_heads * head, 2 * hidden),
        f"{LAYER}self_attn.o_proj.weight": random(hidden, heads * head),
        f"{LAYER}mlp.gate_proj.weight": random(inner, hidden),
        f"{LAYER}mlp.up_proj.weight": random(inner, hidden),
        f"{LAYER}mlp.down_proj.weight": random(hidden, inner),
        "norm.weight": ones(),
        "lm_head.weight": random(vocab, hidden),
    }
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": 1,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head,
        "hidden_act": target["hidden_act"],
        "rms_norm_eps": target["rms_norm_eps"],
        "rope_theta": target["rope_parameters"]["rope_theta"],
        "max_position_embeddings": target["max_position_embeddings"],
        "vocab_size": vocab,
        "draft_vocab_size": vocab,
        "bos_token_id": target["bos_token_id"],
        "eos_token_id": target["eos_token_id"],
        "tie_word_embeddings": False,
        "attention_bias": False,
        "torch_dtype": "float16",
    }
    folder = output / "hf"
    folder.mkdir(parents=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    convert(target_gguf, folder, output / "drafter.gguf")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
