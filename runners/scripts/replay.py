"""The accept length a drafter *would* have: its chains replayed on the target's own tokens and states.

Runs inside the reference environment. Exact for greedy decoding, as the engines chain it: the prompt's prefill gives
the first token; at each verification step the drafter, fed the true states up to the last known token, guesses K
tokens one after the other from its own outputs; the leading ones that equal the target's tokens are accepted, and
the target adds one. All chains of a sequence are one batched pass (scripts/eagle3.py), then the steps are walked.

    python replay.py REQUEST.json RESULT.json
REQUEST: target (folder, for the embeddings), drafter (folder), sequences (file), states (folder), k, output_tokens,
columns (which of the captured boundaries feed the aux slots, in slot order). RESULT: one row a sequence with
`steps, drafted, accepted, accepted_per_position`.
"""

import json
import sys
from pathlib import Path

import eagle3
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file


@torch.inference_mode()
def main(request_file: Path, result_file: Path) -> None:
    r = json.loads(request_file.read_text())
    drafter, ids = eagle3.load(Path(r["drafter"]))
    target = load_file(Path(r["target"]) / "model.safetensors")
    embedding = target["model.embed_tokens.weight"].float()
    packed = load_file(r["sequences"])
    offsets, prompt = packed["offsets"].tolist(), packed["prompt"].tolist()
    captured = states(Path(r["states"]), r["columns"])
    rows = []
    for i, n in enumerate(prompt):
        x = packed["ids"][offsets[i] : offsets[i + 1]].long()
        aux = next(captured)
        accepted = accepted_at(drafter, ids, embedding, x, aux, r["k"])
        rows.append(walk(accepted, n, min(r["output_tokens"], len(x) - n), r["k"]))
    result_file.write_text(json.dumps(rows))


def states(folder: Path, columns: list[int]):
    """aux [T, 3H] float32 of each sequence, in order; the shards say where each begins."""
    for path in sorted(folder.glob("shard-*.safetensors")):
        with safe_open(path, "pt") as shard:
            lengths = shard.get_tensor("lengths").tolist()
            whole = shard.get_slice("states")
            at = 0
            for n in lengths:
                yield whole[at : at + n][:, columns].flatten(1).float()
                at += n


def accepted_at(drafter, ids, embedding, x, aux, k: int) -> torch.Tensor:
    """[T-1] int: drafted tokens accepted by the chain that begins at position t, knowing x_0 .. x_{t+1}.

    Guesses past the end of the sequence count as wrong; callers stop before.
    """
    length = len(x) - 1
    e = F.embedding(x[1:], embedding)[None]
    alive = torch.ones(length, dtype=torch.bool)
    accepted = torch.zeros(length, dtype=torch.long)
    wanted = torch.cat([x[2:], torch.tensor([-1])])
    for step, a in enumerate(drafter.steps(aux[None, :length], e, k)):
        hit = ids[drafter.logits(a[0]).argmax(-1)] == wanted
        moved = torch.zeros(length, dtype=torch.bool)
        moved[: length - step] = hit[step:]
        alive &= moved
        accepted += alive
    return accepted


def walk(accepted: torch.Tensor, prompt: int, output_tokens: int, k: int) -> dict:
    """Verification steps until `output_tokens` are out; counts as the engines' counters have them."""
    out, steps, per_position = 1, 0, [0] * k
    while out < output_tokens:
        t = prompt + out - 2  # x_{t+1} is the last known token
        a = int(accepted[t])
        for position in range(a):
            per_position[position] += 1
        steps += 1
        out += a + 1
    return {"steps": steps, "drafted": steps * k, "accepted": sum(per_position), "accepted_per_position": per_position}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
