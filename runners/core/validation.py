"""A failed pydantic validation in one sentence: the key, what is wrong with it, what is allowed beside it."""

from typing import Any

from pydantic import BaseModel, ValidationError


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
