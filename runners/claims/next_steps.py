"""The menu of next steps, ranked by what each can bring at most (data/next_steps.yaml)."""

from pathlib import Path
from typing import Literal

import pandas as pd

from runners.claims import expressions, named_values
from runners.core import files, paths
from runners.core.errors import UserError
from runners.core.format import NOT_MEASURED
from runners.core.validation import validated
from runners.profiles.strict import Strict

NEXT_STEPS = paths.DATA / "next_steps.yaml"


class Option(Strict):
    """One thing that could be done next."""

    option: str
    buys: str
    costs: str
    settles: str
    command: str
    # The largest speed-up over base that it can bring, an expression over named_values.py's names.
    bounds: dict[Literal["lab", "case"], str]
    tried: str | None = None  # the speed-up that it brought when it was tried here, an expression too


class File(Strict):
    """data/next_steps.yaml."""

    schema_version: Literal[1]
    options: list[Option]


def load(file: Path = NEXT_STEPS) -> list[Option]:
    """The options of a file, in its order; UserError that names the file and its first mistake."""
    return validated(File, files.read_yaml(file, file.name), file.name).options


def bound(expression: str | None, figures: named_values.NamedValues) -> tuple[float | None, str]:
    """(value, working) of a bound; (None, why) where there is no value."""
    if expression is None:
        return None, "no bound from these figures"
    try:
        value, working = expressions.evaluate(expression, figures)
    except (named_values.Missing, named_values.Void):
        return None, NOT_MEASURED
    except (expressions.NotAnExpression, ZeroDivisionError) as error:
        raise UserError(f"{NEXT_STEPS.name}: {error}.") from error
    if value is None or isinstance(value, bool):
        raise UserError(f"{NEXT_STEPS.name}: a bound is a figure, and this is a comparison: {expression:.80}.")
    return float(value), working


def ranked(figures: named_values.NamedValues) -> pd.DataFrame:
    """One row an option, the largest bound in the lab first.

    Columns: Option's own; lab, case (the bounds) and got (`tried`) as speed-ups; each with its working in *_words.
    """
    rows = []
    for o in load():
        lab, lab_words = bound(o.bounds.get("lab"), figures)
        case, case_words = bound(o.bounds.get("case"), figures)
        got, got_words = bound(o.tried, figures) if o.tried else (None, "not tried")
        words = {"lab_words": lab_words, "case_words": case_words, "got_words": got_words}
        rows.append(o.model_dump() | {"lab": lab, "case": case, "got": got} | words)
    frame = pd.DataFrame(rows)
    return frame.sort_values(["lab", "case"], ascending=False, na_position="last", kind="stable").reset_index(drop=True)
