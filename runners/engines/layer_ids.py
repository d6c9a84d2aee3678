"""Which states a drafter's layer ids mean, by engine and release, and which ids to give for given states.

A *boundary* i is the input of layer i. vLLM and llama.cpp take an id as it is; SGLang adds one, by rules that its
module states (`Engine.boundaries`).
"""

from runners.core.errors import UserError
from runners.engines.registry import engine as find


def boundaries(ids: list[int], engine: str, version: str = "", model: str = "deepseek_v2") -> list[int]:
    """The boundaries captured for these ids. model: SGLang's model file, `llama` or `deepseek_v2`.

    Raises UserError for an unknown engine, and where the rule depends on a release that `version` does not name.
    """
    rule = find(engine).boundaries
    return rule(ids, version, model) if rule else list(ids)


def ids_for(wanted: list[int], engine: str, version: str = "", model: str = "deepseek_v2") -> list[int]:
    """The ids to write into a drafter's config so that this engine captures these boundaries.

    Raises UserError where no ids do: from 0.5.13 SGLang cannot capture a list that begins with the input of layer 1.
    """
    # Engines take ids as they are or add one: no third rule is known.
    for candidate in (list(wanted), [b - 1 for b in wanted]):
        if min(candidate) >= 0 and boundaries(candidate, engine, version, model) == list(wanted):
            return candidate
    raise UserError(f"{engine} {version} cannot capture the inputs of layers {wanted}: no layer ids mean them there.")
