"""The accept length a drafter *would* have: its chains replayed on the target's own tokens and states.

Runs inside the reference environment. Exact for greedy decoding, as the engines chain it: the prompt's prefill gives
the first token; at each verification step the drafter, fed the true states up to the last known token, guesses K
tokens one after the other from its own outputs; the leading ones that equal the target's tokens are accepted, and
the target adds one. All chains of a sequence are one batched pass (scripts/eagle3.py), then the steps are walked.

    python replay.py REQUEST.json RESULT.json
REQUEST: target (folder, for the embeddings), drafter (folder), sequences (file), states (folder), k, output_tokens,
columns (which of the captured boundaries feed the aux slots, in slot order), at_once (requests running together),
limit (positions beyond which vLLM drafts zeros; null: none). RESULT: one row a sequence with `steps, drafted, accepted,
accepted_per_position`.
"""

import json
import math
import sys
from pathlib import Path

import eagle3
import model_tensors
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file


@torch.inference_mode()
def main(request_file: Path, result_file: Path) -> None:
    r = json.loads(request_file.read_text())
    drafter, ids = eagle3.load(Path(r["drafter"]))
    embedding = model_tensors.one(Path(r["target"]), model_tensors.EMBEDDING)
    packed = load_file(r["sequences"])
    offsets, prompt = packed["offsets"].tolist(), packed["prompt"].tolist()
    captured = states(Path(r["states"]), r["columns"])
    chains = []
    for i, n in enumerate(prompt):
        x = packed["ids"][offsets[i] : offsets[i + 1]].long()
        accepted = accepted_at(drafter, ids, embedding, x, next(captured), r["k"])
        chains.append((accepted, n, min(r["output_tokens"], len(x) - n)))
    rows = walk_together(chains, r["k"], r["at_once"], math.inf if r["limit"] is None else r["limit"])
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
    return walk_together([(accepted, prompt, output_tokens)], k)[0]


def walk_together(
    chains: list[tuple[torch.Tensor, int, int]], k: int, at_once: int = 1, limit: float = math.inf
) -> list[dict]:
    """`walk` of several requests, `at_once` of them running, where the drafter takes `limit` positions.

    vLLM drafts after each step for the whole batch or, if the longest request and k more do not fit, for none of it:
    the drafted tokens are then zeros, which are verified and counted like others (_input_fits_in_drafter in
    vllm/v1/worker/gpu_model_runner.py, 0.32). A prompt's step is as long as the prompt; a verification step counts the
    k tokens it verifies.
    """
    rows = [{"steps": 0, "drafted": 0, "accepted": 0, "accepted_per_position": [0] * k} for _ in chains]
    out, waiting, running = [0] * len(chains), list(range(len(chains))), []
    drafted = False
    while running or waiting:
        lengths = [chains[i][1] + out[i] + k for i in running]
        for i in running:
            accepted, prompt, _ = chains[i]
            a = int(accepted[prompt + out[i] - 2]) if drafted else 0
            for position in range(a):
                rows[i]["accepted_per_position"][position] += 1
            rows[i]["steps"] += 1
            rows[i]["drafted"] += k
            rows[i]["accepted"] += a
            out[i] += a + 1
        while waiting and len(running) < at_once:
            running.append(waiting.pop(0))
            lengths.append(chains[running[-1]][1])
            out[running[-1]] = 1
        drafted = max(lengths) + k <= limit
        running = [i for i in running if out[i] < chains[i][2]]
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
