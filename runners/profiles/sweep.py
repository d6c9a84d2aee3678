"""Sweeps in a profile: a list for `k` or for a flag makes a configuration of each of its values.

    vllm-eagle3: {method: eagle3, k: [1, 2, 3], ...}      becomes vllm-eagle3-k1, vllm-eagle3-k2, vllm-eagle3-k3
    flags: {block-size: [16, 32]}                         becomes ...-block-size-16, ...-block-size-32

Several lists of one configuration are multiplied out. A flag whose value is itself a list is written as the text of its
JSON; a list inside a flag's mapping is the engine's.
"""

import itertools
import re
from typing import Any, NamedTuple

from runners.core.errors import UserError

Given = dict[str, Any]


class Made(NamedTuple):
    """One configuration of a sweep; `flags` is the end of its name that tells its flags."""

    name: str
    flags: str
    content: Given


def expand(content: Given, what: str) -> None:
    """Replace the configurations that sweep something, in place and in their order, in a profile as it was written.

    Their names in `leave_out` stand for all of them. Of a swept one that is marked `base: true` the first is the base;
    one that names a swept base is compared with that of the same flags, where there is one. UserError, beginning with
    `what`, for an empty list and where two configurations get the same name.
    """
    configurations = content.get("configurations")
    if not isinstance(configurations, dict):
        return
    made = {name: _made(name, given, what) for name, given in configurations.items()}
    everything = [one for several in made.values() for one in several]
    names = [one.name for one in everything]
    if names == list(configurations):
        return
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{what}: two configurations get the name `{twice[0]}`; rename one, or sweep other values.")
    for one in everything:
        base = one.content.get("base") if isinstance(one.content, dict) else None
        if isinstance(base, str) and base in made:
            same = [other.name for other in made[base] if other.flags == one.flags]
            one.content["base"] = (same or [made[base][0].name])[0]
    content["configurations"] = {one.name: one.content for one in everything}
    for place in _sections_that_leave_out(content):
        place["leave_out"] = [whole for name in place["leave_out"] for whole in _all_of(name, made)]


def _made(name: str, given: Any, what: str) -> list[Made]:
    """The configurations that one stands for: itself, or one for each value of its lists."""
    if not isinstance(given, dict):
        return [Made(name, "", given)]
    ks = given["k"] if isinstance(given.get("k"), list) else None
    flags = given["flags"] if isinstance(given.get("flags"), dict) else {}
    lists = {flag: values for flag, values in flags.items() if isinstance(values, list)}
    if ks is None and not lists:
        return [Made(name, "", given)]
    for key, values in [("k", ks), *lists.items()]:
        if values == []:
            raise UserError(f"{what}: `{key}` of configuration `{name}` must list at least one value.")
    made: list[Made] = []
    for k in [None] if ks is None else ks:
        for picked in itertools.product(*(enumerate(values, 1) for values in lists.values())):
            chosen = {flag: value for flag, (_, value) in zip(lists, picked, strict=True)}
            words = {flag: _word(value, number) for flag, (number, value) in zip(lists, picked, strict=True)}
            ending = "".join(f"-{flag}-{_fit(word)}" for flag, word in words.items())
            one = given | ({} if ks is None else {"k": k}) | ({"flags": flags | chosen} if chosen else {})
            if "title" in given:
                said = [f"K = {k}"] if ks is not None else []
                one["title"] = ", ".join([str(given["title"]), *said, *(f"{f} {w}" for f, w in words.items())])
            if given.get("base") is True and made:
                one["base"] = None
            whole = f"{name}{ending}" if ks is None else f"{name}-k{k}{ending}"
            made.append(Made(whole, ending, one))
    return made


def _word(value: Any, number: int) -> str:
    """A flag's value in a title: itself, and of a mapping its number in the list."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(number) if isinstance(value, dict | list) else str(value)


def _fit(word: str) -> str:
    """The word as a part of a name, which is a folder's too."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-")


def _sections_that_leave_out(content: Given) -> list[Given]:
    """The sections of a profile that hold a list `leave_out` of configurations."""
    workload = content.get("workload")
    if not isinstance(workload, dict):
        return []
    presets = workload.get("presets")
    places = [*(presets.values() if isinstance(presets, dict) else ()), workload.get("open_loop")]
    return [place for place in places if isinstance(place, dict) and isinstance(place.get("leave_out"), list)]


def _all_of(name: Any, made: dict[str, list[Made]]) -> list[Any]:
    return [one.name for one in made[name]] if isinstance(name, str) and name in made else [name]
