"""Are a target's multi-token-prediction (MTP) layers there, and do they fit it?"""

import re
from collections.abc import Iterator
from typing import Any

from runners.core.finding import Finding
from runners.drafter.layouts import Layout

# Under which key a config says how many layers there are: DeepSeek, GLM and most others; Qwen; older exports.
COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "n_predict")
# Names of their tensors, apart from layers that are numbered on behind the target's own.
_NAMED = re.compile(r"(?:^|\.)(?:mtp|mtp_layers|nextn|mtp_block)\.|\.(?:eh_proj|enorm|hnorm)\.")
_NUMBER = re.compile(r"^(?:(?:model|language_model|text_model)\.)*layers\.(\d+)\.")


def check(found: Layout, target: dict[str, Any]) -> Iterator[Finding]:
    """Findings of a folder with MTP layers: the target's own, or a checkpoint of the layers alone.

    target: its text config.
    """
    said = count(found.config) or count(target)
    held = [name for name in found.tensors if is_mtp(name, target["num_hidden_layers"])]
    if said and not held and found.tensors:
        words = f"the config names {said} MTP layers, but no tensor of one is there: quantising often leaves them out"
        yield Finding("blocker", words, "take a checkpoint that holds them, or another method")
    elif not said and not held:
        yield Finding("blocker", "the target has no MTP layers", "take another method: an EAGLE-3 head, n-gram")
    elif held:
        words = f"{len(held)} tensors of MTP layers are there" + (f"; the config names {said} layers" if said else "")
        yield Finding("note", words, "")
    if said and held:
        words = f"with K above {said} the same layers draft again from their own outputs: acceptance falls off"
        yield Finding("note", words, f"vLLM takes a K that {said} divides" if said > 1 else "")
    for key in ("hidden_size", "vocab_size"):
        own = found.config.get(key)
        if own and own != target[key]:
            words = f"its {key} is {own:,}, but the target's is {target[key]:,}"
            yield Finding("blocker", words, "use the MTP layers of this target")


def count(config: dict[str, Any]) -> int:
    """How many MTP layers a config names; 0 where it names none."""
    return next((int(config[key]) for key in COUNTS if isinstance(config.get(key), int)), 0)


def is_mtp(name: str, layers: int) -> bool:
    """Whether a tensor belongs to an MTP layer of a target of `layers` layers, which are numbered on behind these.

    >>> is_mtp("layers.61.mlp.gate.weight", 61), is_mtp("layers.60.mlp.gate.weight", 61), is_mtp("mtp.norm.weight", 61)
    (True, False, True)
    """
    number = _NUMBER.search(name)
    return bool(_NAMED.search(name)) or (number is not None and int(number[1]) >= layers)
