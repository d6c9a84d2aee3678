"""A GGUF target, dequantised once into a Hugging Face folder (fp32 safetensors, tokenizer, chat template).

Runs inside the reference environment. transformers reads the GGUF file and undoes llama.cpp's row
permutation of q and k; it refuses to save a model that remembers being quantised, so the weights move
into a fresh model whose configuration does not say so.

    python dequantise.py MODEL.gguf OUTPUT_FOLDER
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

# What describes the file it came from, not the model it is.
ORIGIN_KEYS = (
    "quantization_config",
    "_name_or_path",
    "_model_name_or_path",
    "transformers_version",
    "dtype",
    "torch_dtype",
)


def main(source: Path, output: Path) -> None:
    folder, name = str(source.parent), source.name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    quantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    facts = {k: v for k, v in quantised.config.to_dict().items() if k not in ORIGIN_KEYS}
    config = type(quantised.config)(**facts)
    config.architectures = [type(quantised).__name__]
    config.dtype = torch.float32
    model = type(quantised)(config)
    missing, unexpected = model.load_state_dict(quantised.state_dict(), strict=False)
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    if set(missing) - tied or unexpected:
        sys.exit(f"error: the weights do not fit the model: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    model.eval().save_pretrained(output)
    tokenizer.save_pretrained(output)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters in fp32 -> {output}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
