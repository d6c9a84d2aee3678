"""A failed pydantic validation in one sentence: the key, what must be true of it, what is allowed there."""

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from runners.core.errors import UserError

# pydantic begins "Input should be ...", "List should have ..."; our sentence begins with the key.
_SHOULD = re.compile(r"^(?:Input|String|List|Dictionary|Value|Set|Tuple|URL) should ")
Content = TypeVar("Content", bound=BaseModel)


def validated(model: type[Content], content: dict[str, Any], name: str, whole: str = "the file") -> Content:
    """`content` as a `model`; UserError, beginning with `name` (of the file), that says what is wrong with it first."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{name}: {first_fault(error, model, whole)}") from error


def first_fault(error: ValidationError, model: type[BaseModel], whole: str = "the file") -> str:
    """One sentence about the first fault that a validation by `model` found; the others are counted.

    whole: what to call the content when the fault is not of one key.
    """
    faults = error.errors()
    # One at a time: the first often causes the others.
    first = faults[0]
    path = ".".join(str(p) for p in first["loc"] if p != "[key]")
    key = f"key `{path}`" if path else whole
    message = first["msg"]
    if first["type"] == "extra_forbidden":
        text = f"{key} is unknown; allowed there: {', '.join(_allowed_keys(model, first['loc']))}"
    elif first["type"] == "missing":
        text = f"{key} is missing"
    elif first["type"] == "value_error":  # a sentence of our own validators
        text = message.removeprefix("Value error, ")
        text = f"{path}: {text}" if path else text  # of the whole file: the caller has named it already
    elif _SHOULD.match(message):
        text = f"{key} must {_SHOULD.sub('', message)} (it is {first['input']!r:.60})"
    else:
        text = f"{key}: {message} (it is {first['input']!r:.60})"
    return text + (f"; and {len(faults) - 1} more." if len(faults) > 1 else ".")


def _allowed_keys(model: Any, loc: tuple[int | str, ...]) -> list[str]:
    """The keys of the model that the last part of `loc` lies in, found by following `loc` through the fields."""
    for part in loc[:-1]:
        fields = getattr(model, "model_fields", {})
        if part in fields:
            model = fields[part].annotation
            # Optional[...], list[...] and dict[...] are stepped through to the model inside them.
            while getattr(model, "__args__", None):
                inner = [a for a in model.__args__ if isinstance(a, type) and issubclass(a, BaseModel)]
                model = inner[0] if inner else model.__args__[-1]
    return sorted(getattr(model, "model_fields", {})) or ["(see the documentation)"]
