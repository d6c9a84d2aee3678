"""Files that a person wrote or an interruption tore: read whole and of the right kind, or refused in one sentence."""

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from runners.errors import UserError

WORDS = {dict: "mapping", list: "list"}


class _OneKeyOnce(yaml.SafeLoader):
    """YAML's safe loader, but a key that stands twice in a mapping is an error: the first would be lost in silence."""


def _mapping(loader: _OneKeyOnce, node: yaml.MappingNode) -> dict:
    seen: set = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, str | int | float | bool) and key in seen:
            raise yaml.MarkedYAMLError(problem=f"key `{key}` stands there twice", problem_mark=key_node.start_mark)
        seen.add(key if isinstance(key, str | int | float | bool) else id(key_node))
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_OneKeyOnce.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def text_of(path: Path, what: str) -> str:
    """The file's text; UserError when it cannot be opened or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{what} is no UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    except OSError as error:
        raise UserError(f"{what} cannot be read ({error.strerror}); restore it.") from error


def read_yaml(path: Path, what: str) -> dict:
    """A YAML file that holds a mapping; `what` names it in the sentence. UserError with the line of the first fault."""
    text = text_of(path, what)
    try:
        content = yaml.load(text, Loader=_OneKeyOnce)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "an unreadable character"
        raise UserError(f"{what}{place} is not valid YAML: {problem}.") from error
    except ValueError as error:  # an impossible date, a number that is none
        raise UserError(f"{what} is not valid YAML: {error}; put quotes around it.") from error
    if not isinstance(content, dict):
        raise UserError(f"{what} holds no mapping; its first lines should read `key: value`.")
    return content


def read_json(path: Path, kind: type, advice: str) -> Any:
    """A JSON file that holds a `kind` (dict or list); UserError that ends with `advice`."""
    what = f"{path.parent.name}/{path.name}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UserError(f"{what} is no UTF-8 text; {advice}.") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{what} is not JSON ({error.msg}); {advice}.") from error
    except OSError as error:
        raise UserError(f"{what} cannot be read ({error.strerror}); {advice}.") from error
    if not isinstance(content, kind):
        raise UserError(f"{what} holds no {WORDS[kind]}; {advice}.")
    return content


def first_fault(error: ValidationError, model: type[BaseModel], whole: str = "the file") -> str:
    """The first finding of a validation of `model`, in words, with a full stop; further ones are counted."""
    found = error.errors()
    first = found[0]
    key = ".".join(str(p) for p in first["loc"] if p != "[key]") or whole
    if first["type"] == "extra_forbidden":
        text = f"key `{key}` is unknown; allowed beside it: {', '.join(_siblings(model, first['loc']))}"
    elif first["type"] == "missing":
        text = f"key `{key}` is missing"
    elif first["type"] == "value_error":
        text = f"{key}: {first['msg'].removeprefix('Value error, ')}"
    else:
        text = f"key `{key}`: {first['msg']} (it is {first['input']!r:.60})"
    return text + (f"; and {len(found) - 1} more." if len(found) > 1 else ".")


def _siblings(model: Any, loc: tuple) -> list[str]:
    """The keys allowed where an unknown one was found, by walking the models along `loc`."""
    for part in loc[:-1]:
        fields = getattr(model, "model_fields", {})
        if part in fields:
            model = fields[part].annotation
            # Optional[...], list[...] and dict[...] are stepped through to the model inside them.
            while getattr(model, "__args__", None):
                inner = [a for a in model.__args__ if isinstance(a, type) and issubclass(a, BaseModel)]
                model = inner[0] if inner else model.__args__[-1]
    return sorted(getattr(model, "model_fields", {})) or ["(see the documentation)"]
