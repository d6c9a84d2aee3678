"""What would the drafter's accept length be if one thing were otherwise? Replay under each alternative.

Runs inside the reference environment. A fault that was put in by a wrong convention can be taken out again: the
alternative whose accept length rises most names the fault.

    python what_if.py REQUEST.json RESULT.json
REQUEST: as replay.py's, with `layer_ids` (the boundaries in slot order) and `held` (the boundaries captured); where the
files do not tell them as eagle3.py reads them also `drafter_config` and `target_rope_theta`.
RESULT: {alternative: {"fault": .., "accept_length": .., "every_position": [..]}}; "as it is" is the drafter unchanged.
accept_length: walked, as an engine serves it. every_position: one mean a sequence over chains begun at each of the
answer's positions, many times more chains than are walked, so that small differences can be told.
"""

import copy
import json
import sys
from pathlib import Path

import eagle3
import model_tensors
import replay
import torch
from safetensors.torch import load_file


@torch.inference_mode()
def main(request_file: Path, result_file: Path) -> None:
    r = json.loads(request_file.read_text())
    place = Path(r["target"])
    config = json.loads((place / "config.json").read_text())
    target_embedding = model_tensors.one(place, model_tensors.EMBEDDING)
    if target_embedding is None:
        sys.exit("error: the target's embedding has no name that replay knows")
    head = model_tensors.one(place, model_tensors.HEAD)
    head = target_embedding if head is None else head
    own = model_tensors.one(Path(r["drafter"]), model_tensors.EMBEDDING)
    embedding = target_embedding if own is None else own
    packed = load_file(r["sequences"])
    drafter, ids = eagle3.load(Path(r["drafter"]), r.get("drafter_config"), head)
    held, layer_ids = r["held"], r["layer_ids"]
    results = {}

    def judge(name: str, fault: str | None, drafter=drafter, ids=ids, layers=layer_ids) -> None:
        if any(i not in held for i in layers):
            return
        columns = [held.index(i) for i in layers]
        offsets, prompt = packed["offsets"].tolist(), packed["prompt"].tolist()
        steps = accepted = 0
        every = []
        for i, aux in enumerate(replay.states(Path(r["states"]), columns)):
            x = packed["ids"][offsets[i] : offsets[i + 1]].long()
            counts = replay.accepted_at(drafter, ids, embedding, x, aux, r["k"])
            row = replay.walk(counts, prompt[i], min(r["output_tokens"], len(x) - prompt[i]), r["k"])
            steps, accepted = steps + row["steps"], accepted + row["accepted"]
            # The last K chains run past the end of the text and would count as wrong.
            every.append(1 + float(counts[prompt[i] - 1 : len(counts) - r["k"]].float().mean()))
        results[name] = {"fault": fault, "accept_length": 1 + accepted / steps, "every_position": every}

    judge("as it is", None)
    judge("states one layer earlier", "boundary+1", layers=[i - 1 for i in layer_ids])
    judge("states one layer later", "boundary-1", layers=[i + 1 for i in layer_ids])
    judge("states in reverse order", "aux-order", layers=layer_ids[::-1])

    flipped = copy.deepcopy(drafter)
    flipped.shape.norm_before_residual = not flipped.shape.norm_before_residual
    judge("norm-before-residual flag flipped", "norm-flag", drafter=flipped)

    theta = r.get("target_rope_theta") or config.get("rope_theta")
    theta = theta or (config.get("rope_parameters") or {}).get("rope_theta")
    if theta and theta != drafter.shape.rope_theta:
        rebased = copy.deepcopy(drafter)
        rebased.shape.rope_theta = theta
        judge("the target's RoPE base", "rope-base", drafter=rebased)

    with_head = copy.deepcopy(drafter)
    with_head.lm_head.weight.copy_(head[ids])
    judge("the target's own LM head", "random-head", drafter=with_head)
    for shift in (-1, 1):
        judge(f"vocabulary map moved by {shift:+d}", "wrong-map", ids=torch.roll(ids, shift))
    result_file.write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
