"""Train an EAGLE-3 drafter on captured states, with training-time test (Li et al. 2025, section 3).

Runs inside the reference environment, on a GPU if there is one. The loss of each draft step is the cross entropy
against the target's own distribution over the draft vocabulary (its LM head read at the captured final state), at
the answers' positions; steps are weighted by DECAY^step. Resumable: a checkpoint every few minutes holds the
weights, the optimiser and the place in the schedule.

    python train_drafter.py SETTINGS.json
SETTINGS: target (folder), sequences (file), states (folder), output (folder), config (of the drafter), and the
numbers named in `Settings`. OUTPUT: model.safetensors and config.json (vLLM's layout) and history.json; until then
the resume point, resume.safetensors and resume.json.
"""

import json
import math
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import eagle3
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor
from training_data import Data, choose_vocabulary, make_batches

DECAY = 0.8
# Matrix units for bfloat16 make a step several times faster; weights, optimiser and loss stay in float32.
BFLOAT16 = torch.cuda.is_available() or getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)()
IGNORED = -100


@dataclass
class Settings:
    target: str
    sequences: str
    states: str
    output: str
    config: dict
    draft_vocab_size: int
    epochs: float
    tokens_per_batch: int
    learning_rate: float
    steps: int  # S, draft steps unrolled
    seed: int
    train_tokens: int | None = None  # only so many answer tokens of the training part (the scaling chart)
    minutes: float | None = None  # stop, resumable, after so long
    start: str | None = None  # a drafter's folder to go on from, its draft vocabulary included
    finals: str | None = None  # where the target's own outputs are, if not with the states (llama.cpp's have none)


class Objective:
    """Loss and agreement of a batch."""

    def __init__(self, drafter: eagle3.Drafter, embedding: Tensor, head: Tensor, ids: Tensor, steps: int):
        self.drafter, self.embedding, self.steps = drafter, embedding, steps
        self.head = head[ids]
        self.to_draft = torch.full((len(head),), IGNORED, device=head.device)
        self.to_draft[ids] = torch.arange(len(ids), device=head.device)

    def __call__(self, b: dict[str, Tensor], judge: bool = False) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """(losses, hits, scored): per step a scalar and, to judge, [B, T-2] booleans; where t is scored [B, T-2].

        At position t the guess is of x_{t+2}, whose distribution the target gives at t+1. A position counts in the
        loss when the target's own choice is in the draft vocabulary; the large head is read there only.
        """
        aux, e = b["aux"][:, :-2], F.embedding(b["ids"][:, 1:-1], self.embedding)
        wanted = self.to_draft[b["argmax"][:, 1:-1]]
        scored = b["scored"][:, 2:]
        learned = scored & (wanted >= 0)
        with torch.no_grad():
            target = (b["final"][:, 1:-1][learned] @ self.head.T).float().softmax(-1)
        losses, hits = [], []
        for a in self.drafter.steps(aux, e, self.steps):
            # Every answer begins after at least `steps` tokens of the chat template: no chain is cut at its start.
            logits = self.drafter.logits(a[learned]).float()
            losses.append(F.cross_entropy(logits, target))
            if judge:
                hit = torch.zeros_like(learned)
                hit[learned] = logits.argmax(-1) == wanted[learned]
                hits.append(hit)
        return losses, hits, scored


def accepted(hits: list[Tensor], scored: Tensor) -> list[int]:
    """Tokens accepted at each draft step over the chains begun at every scored position."""
    alive = scored.clone()
    counts = []
    for step, hit in enumerate(hits):
        shifted = torch.zeros_like(hit)
        shifted[:, : hit.shape[1] - step] = hit[:, step:]  # the chain of t is judged at t+step
        alive = alive & shifted
        counts.append(int(alive.sum()))
    return counts


@torch.no_grad()
def evaluate(objective: Objective, data: Data, batches: list[list[int]], device) -> dict:
    """Held-out figures: top-1 agreement a step given a true chain so far, and the accept length they make."""
    agreed, every, chains, loss = [0] * objective.steps, 0, [0] * objective.steps, 0.0
    for rows in batches:
        losses, hits, scored = objective(data.batch(rows, device), judge=True)
        loss += float(losses[0])
        counts = accepted(hits, scored)
        for s in range(objective.steps):
            agreed[s] += int((hits[s] & scored).sum())
            chains[s] += counts[s]
        every += int(scored.sum())
    return {
        "loss": loss / max(len(batches), 1),
        "top1": [a / every for a in agreed],
        "survival": [c / every for c in chains],
        "accept_length": 1 + sum(chains) / every,
        "positions": every,
    }


def warm_start(drafter: eagle3.Drafter, target: dict[str, Tensor], ids: Tensor) -> None:
    """Begin from the target's last layer, final norm and LM head, and from its last captured state.

    The drafter then starts as a target that skips a layer or two, not from noise; the halves of q, k and v that
    read the embedding start at zero.
    """
    hidden = drafter.shape.hidden_size
    layers = 1 + max(int(k.split(".")[2]) for k in target if k.startswith("model.layers."))
    last = f"model.layers.{layers - 1}."
    with torch.no_grad():
        drafter.fc.weight.mul_(0.1)
        drafter.fc.weight[:, -hidden:] += torch.eye(hidden)
        for name in ("q_proj", "k_proj", "v_proj"):
            weight = getattr(drafter, name).weight
            weight[:, :hidden].mul_(0.1)
            weight[:, hidden:] = target[f"{last}self_attn.{name}.weight"]
        drafter.o_proj.weight.copy_(target[f"{last}self_attn.o_proj.weight"])
        for name in ("gate_proj", "up_proj", "down_proj"):
            getattr(drafter, name).weight.copy_(target[f"{last}mlp.{name}.weight"])
        drafter.hidden_norm.copy_(target[f"{last}input_layernorm.weight"])
        drafter.post_attention_layernorm.copy_(target[f"{last}post_attention_layernorm.weight"])
        drafter.norm.copy_(target["model.norm.weight"])
        drafter.lm_head.weight.copy_(target.get("lm_head.weight", target["model.embed_tokens.weight"])[ids])


def main(path: Path) -> None:
    s = Settings(**json.loads(path.read_text()))
    output = Path(s.output)
    output.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(s.seed)
    rng = random.Random(s.seed)
    data = Data(s.sequences, s.states, s.finals)
    train = [i for i in range(len(data.prompt)) if not data.held_out[i] and data.length(i) > data.prompt[i] + 2]
    held_out = [i for i in range(len(data.prompt)) if data.held_out[i] and data.length(i) > data.prompt[i] + 2]
    if s.train_tokens:
        kept, total = [], 0
        for i in train:
            if total >= s.train_tokens:
                break
            kept.append(i)
            total += data.length(i) - data.prompt[i]
        train = kept
    tokens = sum(data.length(i) - data.prompt[i] for i in train)
    target = {k: v.float() for k, v in load_file(Path(s.target) / "model.safetensors").items()}
    embedding = target["model.embed_tokens.weight"].to(device)
    head = target.get("lm_head.weight", target["model.embed_tokens.weight"]).to(device)
    if s.start:
        drafter, ids = eagle3.load(Path(s.start))
    else:
        ids = choose_vocabulary(data, train, s.draft_vocab_size)
        drafter = eagle3.Drafter(eagle3.Shape.of_config(s.config | {"draft_vocab_size": len(ids)}))
        warm_start(drafter, target, ids)
    drafter, ids = drafter.to(device), ids.to(device)
    objective = Objective(drafter, embedding, head, ids, s.steps)
    held_batches = make_batches(data, held_out, s.tokens_per_batch * 2, random.Random(0))

    plan: list[list[int]] = []
    whole = math.floor(s.epochs)
    for _ in range(whole):
        plan += make_batches(data, train, s.tokens_per_batch, rng)
    if s.epochs > whole:
        extra = make_batches(data, train, s.tokens_per_batch, rng)
        plan += extra[: round(len(extra) * (s.epochs - whole))]
    optimiser = torch.optim.AdamW(drafter.parameters(), lr=s.learning_rate, betas=(0.9, 0.95), weight_decay=0.01)
    first, history, spent = _resume(output, drafter, optimiser)
    every = max(1, len(plan) // 12)
    began, saved = time.monotonic(), time.monotonic()
    if first == 0:
        history.append({"step": 0, "seconds": 0.0, **evaluate(objective, data, held_batches, device)})
        print(json.dumps(history[-1]), flush=True)
    running: list[float] = []
    for step in range(first, len(plan)):
        rate = (
            s.learning_rate * min(1, (step + 1) / 50) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / len(plan))))
        )
        for group in optimiser.param_groups:
            group["lr"] = rate
        with torch.autocast(device, torch.bfloat16, enabled=BFLOAT16):
            losses, _, _ = objective(data.batch(plan[step], device))
        loss = sum(DECAY**k * part for k, part in enumerate(losses))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(drafter.parameters(), 1.0)
        optimiser.step()
        running.append(float(loss.detach()))
        seconds = spent + time.monotonic() - began
        if (step + 1) % every == 0 or step + 1 == len(plan):
            row = {"step": step + 1, "of": len(plan), "seconds": seconds, "train_loss": sum(running) / len(running)}
            history.append(row | evaluate(objective, data, held_batches, device))
            running.clear()
            left = (time.monotonic() - began) / (step + 1 - first) * (len(plan) - step - 1) / 60
            print(json.dumps(history[-1]), f"about {left:.0f} min left", flush=True)
        over = s.minutes is not None and time.monotonic() - began > 60 * s.minutes
        if time.monotonic() - saved > 240 or over:
            _keep(output, drafter, optimiser, step + 1, history, seconds)
            saved = time.monotonic()
            if over:
                print("stopped at its time limit; run again to go on", flush=True)
                return
    eagle3.save(drafter.cpu(), ids.cpu(), s.config, output)
    facts = {"train_tokens": tokens, "train_sequences": len(train), "held_out_sequences": len(held_out)}
    facts |= {"parameters": sum(p.numel() for p in drafter.parameters()), "device": device, "bfloat16": BFLOAT16}
    (output / "history.json").write_text(json.dumps({"facts": facts, "history": history}, indent=1) + "\n")
    for name in ("resume.safetensors", "resume.json"):
        (output / name).unlink(missing_ok=True)


def _keep(output: Path, drafter, optimiser, step: int, history: list, seconds: float) -> None:
    """The resume point, in safetensors: a pickle would run code when loaded."""
    tensors = {f"model.{k}": v.cpu().contiguous() for k, v in drafter.state_dict().items()}
    for i, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{i}.{k}": v.cpu().contiguous() for k, v in state.items()}
    save_file(tensors, output / "resume.part")
    os.replace(output / "resume.part", output / "resume.safetensors")
    (output / "resume.json").write_text(json.dumps({"step": step, "history": history, "seconds": seconds}))


def _resume(output: Path, drafter, optimiser) -> tuple[int, list, float]:
    if not (output / "resume.json").is_file() or not (output / "resume.safetensors").is_file():
        return 0, [], 0.0
    tensors = load_file(output / "resume.safetensors")
    drafter.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
    state: dict[int, dict] = {}
    for k, v in tensors.items():
        if k.startswith("optimiser."):
            _, i, name = k.split(".")
            state.setdefault(int(i), {})[name] = v
    optimiser.load_state_dict(optimiser.state_dict() | {"state": state})
    note = json.loads((output / "resume.json").read_text())
    print(f"going on from step {note['step']}", flush=True)
    return note["step"], note["history"], note["seconds"]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
