"""The EAGLE-3 drafter: one decoder layer that guesses the target's next tokens from its hidden states.

EAGLE-3 (Li et al. 2025): three *aux* hidden states of the target are fused by `fc`; the layer reads the fused
state g and the embedding e of the token that follows it, and its output a is both read by the LM head and fed
back in place of g at the next draft step (training-time test: the same happens while training, for S steps).

Notation, for a sequence x_0 .. x_{T}: at position t the drafter holds g_t and e(x_{t+1}) and guesses x_{t+2}.
Draft step s at position t continues the chain that began at position t-s, so all chains of a sequence are one
batched pass: step s reads the outputs of step s-1 shifted right by one, and attends to the true states up to
t-s and to its own chain's s states after that.

Weights are in the layout of vllm/model_executor/models/llama_eagle3.py (0.32.0). Runs inside the reference
environment; everything is float32.
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import model_tensors
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

LAYER = "midlayer."


@dataclass
class Shape:
    """Sizes of a drafter; names as in its config.json."""

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    draft_vocab_size: int
    rope_theta: float
    rms_norm_eps: float
    max_position_embeddings: int
    norm_before_residual: bool = False
    aux: int = 3

    @classmethod
    def of_config(cls, config: dict) -> "Shape":
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in config.items() if k in known})


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """RoPE in halves (Hugging Face's form): x [B, heads, T, head_dim], positions [T]."""
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float32, device=x.device) / half)
    angle = positions[:, None].float() * frequency
    cos, sin = angle.cos(), angle.sin()
    one, two = x[..., :half], x[..., half:]
    return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)


class Drafter(nn.Module):
    """Parameters only; `steps` is the algorithm."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        hidden, inner = shape.hidden_size, shape.intermediate_size
        q, kv = shape.num_attention_heads * shape.head_dim, shape.num_key_value_heads * shape.head_dim
        self.fc = nn.Linear(shape.aux * hidden, hidden, bias=False)
        self.q_proj = nn.Linear(2 * hidden, q, bias=False)
        self.k_proj = nn.Linear(2 * hidden, kv, bias=False)
        self.v_proj = nn.Linear(2 * hidden, kv, bias=False)
        self.o_proj = nn.Linear(q, hidden, bias=False)
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)
        self.input_layernorm = nn.Parameter(torch.ones(hidden))  # of the embedding
        self.hidden_norm = nn.Parameter(torch.ones(hidden))  # of the state
        self.post_attention_layernorm = nn.Parameter(torch.ones(hidden))
        self.norm = nn.Parameter(torch.ones(hidden))
        self.lm_head = nn.Linear(hidden, shape.draft_vocab_size, bias=False)

    def layer(self, e: Tensor, g: Tensor, keys: list[Tensor], values: list[Tensor], positions: Tensor) -> Tensor:
        """One draft step: e, g [B, T, H] -> a [B, T, H]. keys, values: of earlier steps; this one's are appended."""
        s = self.shape
        batch, length, _ = e.shape
        normed = rms_norm(g, self.hidden_norm, s.rms_norm_eps)
        residual = normed if s.norm_before_residual else g
        x = torch.cat([rms_norm(e, self.input_layernorm, s.rms_norm_eps), normed], -1)

        def heads(projected: Tensor, n: int) -> Tensor:
            return projected.view(batch, length, n, s.head_dim).transpose(1, 2)

        q = rotate(heads(self.q_proj(x), s.num_attention_heads), positions, s.rope_theta)
        keys.append(rotate(heads(self.k_proj(x), s.num_key_value_heads), positions, s.rope_theta))
        values.append(heads(self.v_proj(x), s.num_key_value_heads))
        mask = chain_mask(len(keys) - 1, length, x.device)
        repeat = s.num_attention_heads // s.num_key_value_heads
        k = torch.cat(keys, 2).repeat_interleave(repeat, 1)
        v = torch.cat(values, 2).repeat_interleave(repeat, 1)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        a = residual + self.o_proj(attended.transpose(1, 2).reshape(batch, length, -1))
        y = rms_norm(a, self.post_attention_layernorm, s.rms_norm_eps)
        return a + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))

    def logits(self, a: Tensor) -> Tensor:
        """[.., H] -> [.., draft vocabulary]"""
        return self.lm_head(rms_norm(a, self.norm, self.shape.rms_norm_eps))

    def steps(self, aux: Tensor, e: Tensor, count: int):
        """Yield the outputs a [B, T, H] of draft steps 0 .. count-1; `logits` reads them.

        aux: [B, T, 3H], the target's states at positions t; e: [B, T, H], embeddings of the tokens at t+1.
        Step s at position t guesses the token at t+2 and is meaningful for t >= s only.
        """
        g = self.fc(aux)
        positions = torch.arange(e.shape[1], device=e.device)
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for _ in range(count):
            a = self.layer(e, g, keys, values, positions)
            yield a
            g = torch.cat([a[:, :1], a[:, :-1]], 1)


def chain_mask(step: int, length: int, device=None) -> Tensor:
    """[T, (step+1) T] booleans: what step `step` at position t sees of each step's keys.

    Of step 0, the true states: positions up to t-step. Of its own chain's step m >= 1: position t-(step-m) only.
    """
    t = torch.arange(length, device=device)[:, None]
    j = torch.arange(length, device=device)[None]
    parts = [j <= (t - step).clamp(min=0)] + [j == t - (step - m) for m in range(1, step + 1)]
    return torch.cat(parts, 1)


def draft_ids(d2t: Tensor | None, size: int) -> Tensor:
    """Target id of each draft id; the checkpoint holds offsets (absent: the vocabularies are the same)."""
    ids = torch.arange(size)
    return ids if d2t is None else ids + d2t.long()


def save(drafter: Drafter, ids: Tensor, config: dict, folder: Path, dtype: torch.dtype = torch.float16) -> None:
    """model.safetensors and config.json as vLLM reads them. ids: [draft vocabulary], target ids, ascending."""
    s = drafter.shape
    tensors = {}
    for name, value in drafter.state_dict().items():
        place = name if name.startswith(("fc.", "norm", "lm_head.")) else LAYER + _inner(name)
        place = place if place.endswith(".weight") else place + ".weight"
        tensors[place] = value.detach().to(dtype).contiguous()
    if s.draft_vocab_size != s.vocab_size:
        tensors["d2t"] = (ids - torch.arange(len(ids))).long()
        tensors["t2d"] = torch.zeros(s.vocab_size, dtype=torch.bool).index_fill_(0, ids, True)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    sizes = {k: v for k, v in asdict(s).items() if k != "aux"}
    (folder / "config.json").write_text(json.dumps(config | sizes, indent=1) + "\n")


def load(folder: Path, config: dict | None = None, head: Tensor | None = None) -> tuple[Drafter, Tensor]:
    """(drafter in fp32, target ids of its draft vocabulary).

    config: flat, each of Shape's sizes written out; None: the folder's config.json. head: the target's LM head, for a
    drafter that has none; one of another size stays as it was drawn, as in an engine. The layer may be called midlayer
    or layers.0. RuntimeError on tensors that this layout does not know.
    """
    config = config or json.loads((folder / "config.json").read_text())
    tensors = model_tensors.all_of(folder)
    d2t = tensors.pop("d2t", None)
    tensors.pop("t2d", None)
    state = {}
    for place, value in tensors.items():
        place = place.removeprefix("model.").removeprefix(LAYER).removeprefix("layers.0.")
        name = place.removeprefix("self_attn.").removeprefix("mlp.")
        name = name.removesuffix(".weight") if name.removesuffix(".weight") in NORMS else name
        if not name.startswith(NOT_THE_LAYERS):
            state[name] = value.float()
    shape = Shape.of_config(config)
    shape.aux = state["fc.weight"].shape[1] // shape.hidden_size
    drafter = Drafter(shape)
    if "lm_head.weight" not in state:
        drawn = drafter.lm_head.weight.detach()
        state["lm_head.weight"] = head if head is not None and head.shape == drawn.shape else drawn
    drafter.load_state_dict(state)
    return drafter, draft_ids(d2t, shape.draft_vocab_size)


NORMS = ("input_layernorm", "hidden_norm", "post_attention_layernorm", "norm")
NOT_THE_LAYERS = ("embed_tokens.", "rotary_emb.")  # the embedding is read apart; frequencies are computed


def _inner(name: str) -> str:
    """q_proj.weight -> self_attn.q_proj.weight, gate_proj.weight -> mlp.gate_proj.weight, norms as they are."""
    if name.split(".")[0] in ("q_proj", "k_proj", "v_proj", "o_proj"):
        return f"self_attn.{name}"
    return f"mlp.{name}" if name.split(".")[0] in ("gate_proj", "up_proj", "down_proj") else name
