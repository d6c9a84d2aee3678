"""A profile: what to serve and how, in YAML. Errors name the file, the key, and what is allowed."""

from pathlib import Path
from typing import Any

from runners.core import files, paths, secrets
from runners.core.errors import UserError
from runners.core.validation import validated
from runners.profiles import prompt_files, sweep
from runners.profiles.profile import Profile

# What profiles written before December 2026 call these keys of `workload`.
FORMER_KEYS = {"depths": "presets", "default_depth": "default_preset"}
# Profiles that were given as a file elsewhere, by name: what knows only the name of a profile finds its file again.
_elsewhere: dict[str, Path] = {}


def names() -> list[str]:
    """The shipped profiles, sorted."""
    return sorted(p.stem for p in paths.PROFILES.glob("*.yaml"))


def load(name: str) -> Profile:
    """A profile by name (runners/profiles/<name>.yaml, local/profiles/<name>.yaml) or by path of a YAML file.

    Raises UserError naming the file, the key and what is allowed there.
    """
    path = _place(name)
    if not path.is_file():
        raise UserError(f"No profile '{name}'; give one of {', '.join(names())}, or the path of a YAML file.")
    content = files.read_yaml(path, f"Profile {path.name}")
    secrets.learn_from(content)  # before anything can quote it
    content.setdefault("name", path.stem)
    _rename_former_keys(content)
    if content.get("extends") is not None:  # a profile written back says null
        content = _extended(content, path)
    prompt_files.name_paths(content, path.parent)
    sweep.expand(content, f"Profile {path.name}")
    found = validated(Profile, content, f"Profile {path.name}", "the profile")
    if is_yaml_path(name) and not _place(found.name).is_file():
        _elsewhere[found.name] = path.resolve()
    return found


def _rename_former_keys(content: dict[str, Any]) -> None:
    workload = content.get("workload")
    if not isinstance(workload, dict):
        return
    for former, key in FORMER_KEYS.items():
        if former in workload:
            workload[key] = workload.pop(former)


def _extended(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """The profile named by `extends` with this one's keys over it. Configurations, training and the open loop (which
    names configurations and presets) are not inherited.
    """
    parent = str(content["extends"])
    place = paths.PROFILES / f"{parent}.yaml"
    if not place.is_file():
        raise UserError(f"Profile {path.name}: `extends: {parent}` must name one of {', '.join(names())}.")
    base = files.read_yaml(place, f"Profile {place.name}")
    if base.get("extends") is not None:
        raise UserError(f"Profile {path.name}: `extends: {parent}` extends another profile itself; name that one.")
    for key in ("configurations", "training"):
        base.pop(key, None)
    base["workload"].pop("open_loop", None)
    merged = base | content
    for key in ("drafters", "engines", "workload", "gates"):
        if key in base and key in content:
            if not isinstance(content[key], dict):
                raise UserError(f"Profile {path.name}: `{key}` must be a mapping; leave it out to take {parent}'s.")
            merged[key] = base[key] | content[key]
    return merged


def is_yaml_path(profile: str) -> bool:
    return profile.endswith((".yaml", ".yml"))


def load_if_known(profile: str) -> Profile | None:
    """The profile itself, or None when only its runs are here (a ledger outlives a renamed profile)."""
    found = argument(profile)
    known = [*names(), *(p.stem for p in paths.LOCAL_PROFILES.glob("*.yaml"))]
    return load(found) if is_yaml_path(found) or found in known else None


def argument(name: str) -> str:
    """What `--profile` and `PROFILE=` take for the profile of this name: its file, where it was given as one."""
    path = _elsewhere.get(name)
    return str(path) if path is not None and path.is_file() else name


def _place(name: str) -> Path:
    """The file of a profile given by name or by path; it may not exist."""
    if is_yaml_path(name):
        return Path(name)
    shipped, own = paths.PROFILES / f"{name}.yaml", paths.LOCAL_PROFILES / f"{name}.yaml"
    return own if own.is_file() and not shipped.is_file() else shipped
