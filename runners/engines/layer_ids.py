"""Which states a drafter's layer ids mean, by engine and release, and which ids to give for given states.

A *boundary* i is the input of layer i. vLLM and llama.cpp take an id as it is. SGLang adds one: in models/llama.py
always, in models/deepseek_v2.py (Kimi) always up to 0.5.12 and from 0.5.13 only where the first id is 1
(`set_eagle3_layers_to_capture`; the audit table of the book is read from the wheels).
"""

from packaging.version import InvalidVersion, Version

from runners.core.errors import UserError

CHANGED = Version("0.5.13")


def boundaries(ids: list[int], engine: str, version: str = "", model: str = "deepseek_v2") -> list[int]:
    """The boundaries captured for these ids. model: SGLang's model file, `llama` or `deepseek_v2`."""
    return [i + 1 for i in ids] if _adds_one(ids, engine, version, model) else list(ids)


def ids_for(wanted: list[int], engine: str, version: str = "", model: str = "deepseek_v2") -> list[int]:
    """The ids to write into a drafter's config so that this engine captures these boundaries.

    Raises UserError where no ids do: from 0.5.13 SGLang cannot capture a list that begins with the input of layer 1.
    """
    for candidate in (list(wanted), [b - 1 for b in wanted]):
        if min(candidate) >= 0 and boundaries(candidate, engine, version, model) == list(wanted):
            return candidate
    raise UserError(f"{engine} {version} cannot capture the inputs of layers {wanted}: no layer ids mean them there.")


def _adds_one(ids: list[int], engine: str, version: str, model: str) -> bool:
    if engine in ("vllm", "llamacpp"):
        return False
    if engine != "sglang":
        raise UserError(f"No engine '{engine}'; layer ids are known for llamacpp, sglang and vllm.")
    if model == "llama":
        return True
    try:
        later = Version(version) >= CHANGED
    except InvalidVersion as error:
        raise UserError(f"SGLang '{version}' is no release number; its rule for layer ids depends on it.") from error
    return bool(ids) and ids[0] == 1 if later else True
