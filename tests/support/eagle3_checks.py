"""Run inside the reference environment by test_eagle3.py: the batched chains against drafting one token at a time."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, sys.argv[1])
import eagle3  # noqa: E402
import model_tensors  # noqa: E402
import replay  # noqa: E402
import train_drafter  # noqa: E402

torch.manual_seed(0)
SHAPE = eagle3.Shape(
    hidden_size=16, intermediate_size=24, num_attention_heads=4, num_key_value_heads=2, head_dim=4, vocab_size=50,
    draft_vocab_size=20, rope_theta=100.0, rms_norm_eps=1e-5, max_position_embeddings=64,
)  # fmt: skip
K, T = 3, 12


def one_at_a_time(drafter, aux, e, t: int) -> list[torch.Tensor]:
    """Logits of the chain that begins at t: causal over true states 0..t, then over its own outputs."""
    g = drafter.fc(aux[:, : t + 1])
    out = []
    for step in range(K):
        length = t + 1 + step
        if length > e.shape[1]:
            break
        a = drafter.layer(e[:, :length], g, [], [], torch.arange(length))
        out.append(drafter.logits(a[:, -1:])[0, 0])
        g = torch.cat([g, a[:, -1:]], 1)
    return out


def chains_agree(norm_before_residual: bool) -> None:
    shape = eagle3.Shape(**(vars(SHAPE) | {"norm_before_residual": norm_before_residual}))
    drafter = eagle3.Drafter(shape).eval()
    aux, e = torch.randn(1, T, 48), torch.randn(1, T, 16)
    batched = [drafter.logits(a) for a in drafter.steps(aux, e, K)]
    for t in range(T):
        for step, logits in enumerate(one_at_a_time(drafter, aux, e, t)):
            torch.testing.assert_close(batched[step][0, t + step], logits, rtol=1e-4, atol=1e-5)


def saved_is_loaded(folder: Path) -> None:
    drafter = eagle3.Drafter(SHAPE)
    ids = torch.arange(5, 45, 2)
    eagle3.save(drafter, ids, {"model_type": "llama"}, folder, torch.float32)
    again, found = eagle3.load(folder)
    assert found.tolist() == ids.tolist()
    for name, value in drafter.state_dict().items():
        torch.testing.assert_close(value, again.state_dict()[name], msg=name)


def other_layouts_are_loaded(folder: Path) -> None:
    """Saved as speculators does: `layers.0.`, an embedding of its own, no LM head, two files, a config given apart."""
    drafter = eagle3.Drafter(eagle3.Shape(**(vars(SHAPE) | {"draft_vocab_size": 50})))
    eagle3.save(drafter, torch.arange(50), {}, folder, torch.float32)
    held = {n.replace("midlayer.", "model.layers.0."): t for n, t in load_file(folder / "model.safetensors").items()}
    held["embed_tokens.weight"] = torch.full((50, 16), 2.0)
    head = held.pop("lm_head.weight")
    (folder / "model.safetensors").unlink()
    names = sorted(held)
    place = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(names)}
    for file in ("model-0.safetensors", "model-1.safetensors"):
        save_file({n: held[n] for n in names if place[n] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text("{}")
    again, found = eagle3.load(folder, config, head)
    assert found.tolist() == list(range(50)) and again.shape.aux == 3
    for name, value in drafter.state_dict().items():
        torch.testing.assert_close(value, again.state_dict()[name], msg=name)
    drawn, _ = eagle3.load(folder, config, head[:20])  # another vocabulary's head does not serve
    assert not torch.equal(drawn.lm_head.weight, head)
    assert float(model_tensors.one(folder, model_tensors.EMBEDDING).mean()) == 2.0
    assert model_tensors.one(folder, model_tensors.HEAD) is None


def walks() -> None:
    # A perfect drafter of K=3 and 9 tokens: prefill gives 1, two steps of four the rest.
    perfect = torch.full((20,), 3)
    assert replay.walk(perfect, 4, 9, 3) == {
        "steps": 2, "drafted": 6, "accepted": 6, "accepted_per_position": [2, 2, 2],
    }  # fmt: skip
    assert replay.walk(torch.zeros(20, dtype=torch.long), 4, 9, 3)["steps"] == 8
    mixed = torch.zeros(20, dtype=torch.long)
    mixed[3] = 2  # the first chain (last known token at index 4) accepts two, all others none
    found = replay.walk(mixed, 4, 6, 3)
    assert found["accepted_per_position"] == [1, 1, 0] and found["steps"] == 3


def walks_up_to_a_limit() -> None:
    perfect, none = torch.full((40,), 3), torch.zeros(40, dtype=torch.long)
    alone = [replay.walk(c, n, 9, 3) for c, n in ((perfect, 4), (none, 6))]
    chains = [(perfect, 4, 9), (none, 6, 9)]
    assert replay.walk_together(chains, 3, 1, 1000) == alone == replay.walk_together(chains, 3, 2, 1000)
    # Prompt 4 and 3 more fit into 10, so the first chain is drafted; verifying it makes 5 + 3 and 3 more do not.
    assert replay.walk_together([(perfect, 4, 9)], 3, 1, 10)[0]["accepted_per_position"] == [1, 1, 1]
    assert replay.walk_together([(perfect, 4, 9)], 3, 1, 11)[0]["accepted"] == 6
    # Beside a prompt of 9 none fits, for either.
    rows = replay.walk_together([(perfect, 4, 9), (perfect, 9, 9)], 3, 2, 11)
    assert [r["accepted"] for r in rows] == [0, 0] and [r["steps"] for r in rows] == [8, 8]
    assert [r["drafted"] for r in rows] == [24, 24]  # zeros, counted like others


def acceptance_is_a_chain() -> None:
    hits = [torch.tensor([[True, True, False, True]]), torch.tensor([[False, True, True, False]])]
    scored = torch.tensor([[True, True, True, True]])
    counts = train_drafter.accepted(hits, scored)
    assert (counts, int(scored.sum())) == ([3, 2], 4), counts


chains_agree(False)
chains_agree(True)
saved_is_loaded(Path(sys.argv[2]))
other_layouts_are_loaded(Path(sys.argv[2]) / "other")
walks()
walks_up_to_a_limit()
acceptance_is_a_chain()
print("ok")
