"""What greedy decoding of the reference model answers: transformers, fp32, on the dequantised weights.

Runs inside the reference environment. An engine can be healthy, fast and wrong; its base answers are held
against these. Batched with left padding: in fp32 that moves logits by rounding only.

    python reference_greedy.py MODEL_FOLDER REQUEST.json ANSWERS.json
REQUEST.json: {"prompts": [{"id": str, "messages": [...]}], "max_new_tokens": int, "batch": int}
ANSWERS.json: {"answers": {id: text}, "tokens": {id: [int]}, "prompt_tokens": {id: [int]}, "torch": .., ..}
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer


@torch.inference_mode()
def main(folder: Path, request_file: Path, answer_file: Path) -> None:
    request = json.loads(request_file.read_text())
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    n = request["max_new_tokens"]
    # The engines are told to ignore the end of the text, so the reference must not stop there either.
    model.generation_config.eos_token_id = None
    answers, tokens, prompt_tokens = {}, {}, {}
    prompts = sorted(request["prompts"], key=lambda p: sum(len(m["content"]) for m in p["messages"]))
    for start in range(0, len(prompts), request["batch"]):
        batch = prompts[start : start + request["batch"]]
        texts = [
            tokenizer.apply_chat_template(p["messages"], tokenize=False, add_generation_prompt=True) for p in batch
        ]
        inputs = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        output = model.generate(
            **inputs, max_new_tokens=n, min_new_tokens=n, do_sample=False, pad_token_id=tokenizer.pad_token_id
        )
        length = inputs["input_ids"].shape[1]
        for prompt, row, mask in zip(batch, output, inputs["attention_mask"], strict=True):
            prompt_tokens[prompt["id"]] = row[:length][mask.bool()].tolist()
            row = row[length:]
            tokens[prompt["id"]] = row.tolist()
            answers[prompt["id"]] = tokenizer.decode(row, skip_special_tokens=True)
        print(f"{min(start + request['batch'], len(prompts))}/{len(prompts)}", flush=True)
    facts = {"torch": torch.__version__, "transformers": transformers.__version__}
    answer_file.write_text(json.dumps({"answers": answers, "tokens": tokens, "prompt_tokens": prompt_tokens, **facts}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
