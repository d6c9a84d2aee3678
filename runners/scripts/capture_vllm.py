"""Hidden states as vLLM itself computes them, by its own extraction (speculative method `extract_hidden_states`).

Runs inside the vLLM environment. vLLM's layer id i is the residual stream after i layers, hence the *input of layer
i* and id 0 the embeddings (vllm/model_executor/models/llama.py:430 and :440, 0.32.0: called with start_layer before the
first layer and with idx + 1 after layer idx); nothing is added to EAGLE-3's ids.

    python capture_vllm.py MODEL_FOLDER SEQUENCES.safetensors OUTPUT_FOLDER BOUNDARY,BOUNDARY,...
Files as capture_reference.py writes them, without `final` and `argmax`; one shard.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def main(folder: Path, sequences: Path, output: Path, boundaries: list[int]) -> None:
    here = str(Path(__file__).resolve().parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    # The CPU build else takes nearly all of the machine's memory for keys and values, and keeps a core for itself.
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")
    from vllm import LLM, SamplingParams, TokensPrompt
    from vllm.distributed.kv_transfer.kv_connector.v1 import example_hidden_states_connector as stock

    packed = load_file(sequences)
    ids, offsets = packed["ids"].tolist(), packed["offsets"].tolist()
    rows = [ids[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    with tempfile.TemporaryDirectory() as scratch:
        engine = LLM(
            model=str(folder),
            dtype="float32",
            enforce_eager=True,
            max_model_len=max(map(len, rows)) + 8,
            max_num_seqs=16,
            enable_prefix_caching=False,
            speculative_config={
                "method": "extract_hidden_states",
                "num_speculative_tokens": 1,
                "draft_model_config": {"hf_config": {"eagle_aux_hidden_state_layer_ids": boundaries}},
            },
            kv_transfer_config={
                "kv_connector": "CpuHiddenStatesConnector",
                "kv_connector_module_path": "vllm_hidden_states",
                "kv_role": "kv_producer",
                "kv_connector_extra_config": {"shared_storage_path": scratch},
            },
        )
        outputs = engine.generate(
            [TokensPrompt(prompt_token_ids=row) for row in rows], SamplingParams(temperature=0, max_tokens=1)
        )
        found = []
        for row, out in zip(rows, outputs, strict=True):
            got = stock.load_hidden_states(out.kv_transfer_params["hidden_states_path"])
            if got["token_ids"][: len(row)].tolist() != row:
                sys.exit("error: vLLM returned the states of other tokens")
            found.append(got["hidden_states"][: len(row)].half())
    output.mkdir(parents=True, exist_ok=True)
    tensors = {"states": torch.cat(found).contiguous(), "lengths": torch.tensor([len(r) for r in rows])}
    save_file(tensors, output / "shard-0000.safetensors")
    import vllm

    manifest = {
        "source": "vllm",
        "engine_version": vllm.__version__,
        "boundaries": [f"input of layer {i}" for i in boundaries],
        "dtype": "float16",
        "sequences": len(rows),
        "tokens": offsets[-1],
    }
    (output / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), [int(i) for i in sys.argv[4].split(",")])
