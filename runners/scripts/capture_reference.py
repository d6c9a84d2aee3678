"""Hidden states of the reference model (transformers, fp32, dequantised weights) for given token ids.

Runs inside the reference environment. States are named by *boundary*: "input of layer i" is the residual stream
that enters layer i (transformers' hidden_states[i], modeling_llama.py; the output of layer i-1). Engines number the
same boundary differently, so a bare id is never stored.

    python capture_reference.py MODEL_FOLDER SEQUENCES.safetensors OUTPUT_FOLDER BOUNDARY,BOUNDARY,...
SEQUENCES: `ids` int32 [tokens], `offsets` int64 [sequences + 1]. OUTPUT: shards of SHARD sequences, each with
`lengths` int64 [sequences], `states` float16 [tokens, boundaries, hidden], `final` float16 [tokens, hidden] (after
the last norm, what the LM head reads) and `argmax` int32 [tokens]; manifest.json. Whole shards are kept when it is
run again.
"""

import json
import sys
import time
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

SHARD = 100
TOKENS_PER_BATCH = 2048


@torch.inference_mode()
def main(folder: Path, sequences: Path, output: Path, boundaries: list[int]) -> None:
    packed = load_file(sequences)
    ids, offsets = packed["ids"].long(), packed["offsets"].tolist()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    seen: dict[int, torch.Tensor] = {}
    for i in boundaries:
        keep = lambda module, args, kwargs, i=i: seen.__setitem__(i, args[0] if args else kwargs["hidden_states"])  # noqa: E731
        model.model.layers[i].register_forward_pre_hook(keep, with_kwargs=True)
    output.mkdir(parents=True, exist_ok=True)
    count = len(offsets) - 1
    began, done = time.monotonic(), 0
    for first in range(0, count, SHARD):
        place = output / f"shard-{first // SHARD:04d}.safetensors"
        if place.is_file():
            continue
        last = min(first + SHARD, count)
        rows = {i: ids[offsets[i] : offsets[i + 1]] for i in range(first, last)}
        found = _shard(model, rows, boundaries, seen)
        part = place.with_suffix(".part")
        save_file(found, part)
        part.rename(place)
        done += len(found["argmax"])
        pace = (time.monotonic() - began) / done
        print(f"{last}/{count} sequences, about {pace * (offsets[-1] - offsets[last]) / 60:.0f} min left", flush=True)
    manifest = {
        "source": "reference",
        "boundaries": [f"input of layer {i}" for i in boundaries],
        "final": "after the last norm",
        "dtype": "float16",
        "sequences": count,
        "tokens": offsets[-1],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    (output / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def _shard(model, rows: dict[int, torch.Tensor], boundaries: list[int], seen: dict) -> dict[str, torch.Tensor]:
    """States of these sequences, in their order. Padding is on the right: a causal model never sees it."""
    order = sorted(rows, key=lambda i: len(rows[i]))
    found: dict[int, tuple] = {}
    while order:
        size = max(1, TOKENS_PER_BATCH // len(rows[order[-1]]))
        batch, order = order[-size:], order[:-size]
        longest = max(len(rows[i]) for i in batch)
        x = torch.zeros(len(batch), longest, dtype=torch.long)
        for row, i in enumerate(batch):
            x[row, : len(rows[i])] = rows[i]
        final = model.model(input_ids=x, use_cache=False).last_hidden_state
        states = torch.stack([seen[i] for i in boundaries], 2)
        if not torch.isfinite(states.half()).all():
            sys.exit("error: a hidden state does not fit float16; store another dtype")
        for row, i in enumerate(batch):
            n = len(rows[i])
            argmax = model.lm_head(final[row, :n]).argmax(-1).int()
            found[i] = (states[row, :n].half(), final[row, :n].half(), argmax)
    names = ("states", "final", "argmax")
    joined = {name: torch.cat([found[i][k] for i in sorted(found)]).contiguous() for k, name in enumerate(names)}
    return joined | {"lengths": torch.tensor([len(rows[i]) for i in sorted(rows)])}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), [int(i) for i in sys.argv[4].split(",")])
