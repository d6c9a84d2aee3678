"""The menu of next steps, ranked by what each can bring at most (data/next_steps.yaml)."""

from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import ValidationError

from runners.claims import expressions, named_values
from runners.core import files, paths, validation
from runners.core.errors import UserError
from runners.core.format import NOT_MEASURED
from runners.profiles.schema import Strict

PLACE = paths.DATA / "next_steps.yaml"


class Option(Strict):
    option: str
    buys: str
    costs: str
    settles: str
    command: str
    bounds: dict[Literal["lab", "case"], str]
    tried: str | None = None  # what it brought here, an expression like a bound


class File(Strict):
    schema_version: Literal[1]
    options: list[Option]


def load(place: Path = PLACE) -> list[Option]:
    """UserError that names the file and the first fault."""
    content = files.read_yaml(place, str(place.name))
    try:
        return File.model_validate(content).options
    except ValidationError as error:
        raise UserError(f"{place.name}: {validation.first_fault(error, File)}") from error


def bound(expression: str | None, figures: named_values.NamedValues) -> tuple[float | None, str]:
    """(value, working) of a bound; (None, why) where it cannot be told."""
    if expression is None:
        return None, "no bound from these figures"
    try:
        value, working = expressions.evaluate(expression, figures)
    except (named_values.Missing, named_values.Void):
        return None, NOT_MEASURED
    except (expressions.NotAnExpression, ZeroDivisionError) as error:
        raise UserError(f"{PLACE.name}: {error}.") from error
    return float(value), working


def ranked(figures: named_values.NamedValues) -> pd.DataFrame:
    """One row an option, the largest bound in the lab first: option, bounds and what was got, each with its working."""
    rows = []
    for o in load():
        lab, lab_words = bound(o.bounds.get("lab"), figures)
        case, case_words = bound(o.bounds.get("case"), figures)
        got, got_words = bound(o.tried, figures) if o.tried else (None, "not tried")
        words = {"lab_words": lab_words, "case_words": case_words, "got_words": got_words}
        rows.append(o.model_dump() | {"lab": lab, "case": case, "got": got} | words)
    frame = pd.DataFrame(rows)
    return frame.sort_values(["lab", "case"], ascending=False, na_position="last", kind="stable").reset_index(drop=True)
