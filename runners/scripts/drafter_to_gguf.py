"""An EAGLE-3 drafter in the Hugging Face layout, exported to the GGUF that llama.cpp serves.

Runs inside the reference environment. Layouts: vllm/model_executor/models/llama_eagle3.py on one side,
llama.cpp's `eagle3` architecture on the other (src/llama-arch.cpp, src/models/eagle3.cpp).

    python drafter_to_gguf.py TARGET.gguf DRAFTER_FOLDER OUTPUT.gguf
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

LAYER = "midlayer."
NAMES = {
    "fc.weight": "fc.weight",
    f"{LAYER}input_layernorm.weight": "blk.0.attn_norm.weight",
    f"{LAYER}hidden_norm.weight": "blk.0.attn_norm_2.weight",
    f"{LAYER}post_attention_layernorm.weight": "blk.0.ffn_norm.weight",
    f"{LAYER}self_attn.q_proj.weight": "blk.0.attn_q.weight",
    f"{LAYER}self_attn.k_proj.weight": "blk.0.attn_k.weight",
    f"{LAYER}self_attn.v_proj.weight": "blk.0.attn_v.weight",
    f"{LAYER}self_attn.o_proj.weight": "blk.0.attn_output.weight",
    f"{LAYER}mlp.gate_proj.weight": "blk.0.ffn_gate.weight",
    f"{LAYER}mlp.up_proj.weight": "blk.0.ffn_up.weight",
    f"{LAYER}mlp.down_proj.weight": "blk.0.ffn_down.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def rope_rows(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of q or k [heads x head_dim, in] from halves (Hugging Face) to neighbours (llama.cpp's NORM RoPE)."""
    rows, columns = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def convert(target: Path, folder: Path, output: Path) -> None:
    """Write OUTPUT; raises KeyError on a tensor this layout does not know."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    reader = gguf.GGUFReader(target)
    own = {k: f.contents() for k, f in reader.fields.items() if k.startswith("llama.")}
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(output, "eagle3")  # PyPI gguf 0.19.0 has no name for this architecture
    writer.add_name("EAGLE-3 drafter")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(1)
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_vocab_size(own["llama.vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    # Each id names the *input* of that layer, in llama.cpp as in vLLM.
    layers = own["llama.block_count"]
    ids = config.get("eagle_config", {}).get("eagle_aux_hidden_state_layer_ids") or [2, layers // 2, layers - 3]
    writer.add_array("eagle3.target_layers", ids)
    writer.add_uint32("eagle3.target_hidden_size", own["llama.embedding_length"])
    writer.add_bool("eagle3.norm_before_residual", bool(config.get("norm_before_residual", False)))
    for key, field in reader.fields.items():  # the drafter speaks in the target's tokens
        if not key.startswith("tokenizer."):
            continue
        content, kind = field.contents(), field.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, content)
        else:
            writer.add_key_value(key, content, kind)
    for name, tensor in tensors.items():
        if name == "d2t":  # offsets there, absolute target ids here
            absolute = tensor.astype(np.int64) + np.arange(len(tensor), dtype=np.int64)
            writer.add_tensor("d2t", absolute, raw_dtype=gguf.GGMLQuantizationType.I64)
            continue
        if name == "t2d":
            continue
        value = tensor.astype(np.float32)
        if name.endswith("q_proj.weight"):
            value = rope_rows(value, heads)
        if name.endswith("k_proj.weight"):
            value = rope_rows(value, kv_heads)
        writer.add_tensor(NAMES[name], np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
