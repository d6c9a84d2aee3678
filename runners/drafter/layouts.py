"""What a drafter's folder holds: its method, its layout, and its tensors under one spelling.

Published checkpoints spell the one layer of an EAGLE-3 head `midlayer.` (EAGLE's own code, SpecForge, AngelSlim,
ModelOpt) or `layers.0.` (speculators, heads with MLA), with or without `model.` before it. vLLM maps the first to the
second (model_executor/models/llama_eagle3.py, 0.32); here everything is looked up under the second, too.
"""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runners.core.checkpoint import Checkpoint, flat_config

# Attention's first projection, which tells what a layer takes in; with MLA it is one of the last three.
INPUTS = ("q_proj", "qkv_proj", "q_a_proj", "kv_a_proj_with_mqa", "fused_qkv_a_proj_with_mqa")
_MLA = INPUTS[2:]
# Bytes of an element by safetensors' name of its dtype; I32 and U8 hold packed weights of four bits.
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I64": 8, "I32": 4, "U8": 1, "I8": 1}

TITLES = {
    "eagle3": "EAGLE-3 head",
    "eagle": "EAGLE head of the first or second kind",
    "mtp": "MTP layers",
    "draft_model": "draft model",
    "dflash": "DFlash drafter",
    "dspark": "DSpark drafter",
    "medusa": "Medusa heads",
    "mlp_speculator": "MLP speculator",
}


@dataclass(frozen=True)
class Layout:
    """A drafter as it is looked at.

    method: the house's word (profiles/methods.py). config: flat. tensors: spelled name -> (dtype, shape); none where
    the weights are pickles. named: spelled name -> the name in the file. files: spelled name -> its file.
    """

    method: str
    title: str
    config: dict[str, Any]
    tensors: dict[str, tuple[str, list[int]]]
    named: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    pickles: tuple[str, ...] = ()
    folder: Path | None = None

    def shape(self, name: str) -> list[int] | None:
        """A tensor's shape; None where there is no such tensor."""
        return self.tensors[name][1] if name in self.tensors else None

    def has(self, beginning: str) -> bool:
        """Whether any tensor's name begins so."""
        return any(name.startswith(beginning) for name in self.tensors)

    @property
    def hidden_size(self) -> int | None:
        """The head's own hidden size: by its config, else by fc's outputs."""
        size: int | None = self.config.get("hidden_size")
        fc = self.shape("fc.weight")
        return size or (fc[0] if fc else None)

    @property
    def layers(self) -> int:
        """How many layers its weights hold; 0 where there are no tensors."""
        return len({name.split(".")[1] for name in self.tensors if name.startswith("layers.")})

    @property
    def uses_aux(self) -> bool:
        """Whether it takes several of the target's states (EAGLE-3), not the last one alone."""
        nested = self.config.get("eagle_config")
        return not isinstance(nested, dict) or nested.get("use_aux_hidden_state") is not False

    @property
    def mla(self) -> bool:
        """Whether its attention is DeepSeek's multi-head latent attention."""
        return any(f"layers.0.self_attn.{name}.weight" in self.tensors for name in _MLA) or bool(
            not self.tensors and self.config.get("kv_lora_rank")
        )


def of(checkpoint: Checkpoint) -> Layout:
    """What the folder holds."""
    config = flat_config(checkpoint.config)
    spelled = {spelling(name): name for name in checkpoint.tensors}
    tensors = {short: checkpoint.tensors[name] for short, name in spelled.items()}
    method = _method(config, tensors)
    files = {short: checkpoint.files[name] for short, name in spelled.items() if name in checkpoint.files}
    found = Layout(method, "", config, tensors, spelled, files, checkpoint.pickles, checkpoint.folder)
    return replace(found, title=_title(found))


def mtp_of(target: Checkpoint) -> Layout:
    """A target looked at as the drafter that it is by its own MTP layers."""
    return replace(of(target), method="mtp", title=TITLES["mtp"])


def spelling(name: str) -> str:
    """A tensor's name as it is looked up.

    >>> spelling("model.midlayer.self_attn.q_proj.weight")
    'layers.0.self_attn.q_proj.weight'
    """
    name = name.removeprefix("model.")
    return "layers.0." + name.removeprefix("midlayer.") if name.startswith("midlayer.") else name


def _method(config: dict[str, Any], tensors: dict[str, tuple[str, list[int]]]) -> str:
    """By what the config says it is, else by its tensors."""
    said = " ".join([str(config.get("model_type", "")), *map(str, config.get("architectures") or [])]).lower()
    kind = str(config.get("speculators_model_type") or "")
    if kind:
        return {"peagle": "eagle3", "independent": "draft_model"}.get(kind, kind)
    named = next((m for m in ("dflash", "dspark", "medusa", "mlp_speculator", "eagle3") if m in said), None)
    if named or config.get("dflash_config"):
        return named or "dflash"
    fc, hidden = tensors.get("fc.weight"), config.get("hidden_size")
    if "d2t" in tensors or config.get("draft_vocab_size") or config.get("eagle_config"):
        return "eagle3"
    if "mtp" in said or "nextn" in said or any(".eh_proj." in name or name.startswith("mtp") for name in tensors):
        return "mtp"
    if "eagle" in said:
        return "eagle"
    if fc is not None:
        return "eagle" if hidden and fc[1][1] == 2 * hidden else "eagle3"
    # Without weights to look at: a published EAGLE head calls itself a whole model, of one layer.
    return "eagle" if not tensors and config.get("num_hidden_layers") == 1 else "draft_model"


def _title(found: Layout) -> str:
    title = TITLES.get(found.method, found.method)
    if found.method == "eagle3":
        title += " with MLA" if found.mla else ""
        layers = found.layers or found.config.get("num_hidden_layers") or 1
        title += f" of {layers} layers" if layers > 1 else ""
    return title + (", as speculators writes it" if found.config.get("speculators_model_type") else "")


def weight_bytes(tensors: dict[str, tuple[str, list[int]]]) -> int:
    """Bytes of all tensors, by their dtypes and shapes."""
    return sum(BYTES.get(kind, 2) * math.prod(shape) for kind, shape in tensors.values())
