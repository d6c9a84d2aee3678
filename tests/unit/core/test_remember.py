"""What is computed once: only where the variable says so, by the content of the arguments, and as a copy."""

import pandas as pd

from runners.core import remember


@remember.remembered
def rows(frame: pd.DataFrame, calls: str = "x") -> list[int]:
    COUNTED.append(calls)
    return [int(v) for v in frame["a"]]


COUNTED: list[str] = []


def test_nothing_is_remembered_without_the_variable(monkeypatch):
    monkeypatch.delenv(remember.VARIABLE, raising=False)
    COUNTED.clear()
    frame = pd.DataFrame({"a": [1, 2]})
    assert rows(frame) == rows(frame) == [1, 2] and len(COUNTED) == 2


def test_equal_arguments_are_computed_once_and_each_caller_has_a_copy(monkeypatch):
    monkeypatch.setenv(remember.VARIABLE, "1")
    monkeypatch.setattr(remember, "_kept", {})
    COUNTED.clear()
    first = rows(pd.DataFrame({"a": [1, 2]}))
    first.append(3)
    assert rows(pd.DataFrame({"a": [1, 2]})) == [1, 2] and len(COUNTED) == 1
    assert rows(pd.DataFrame({"a": [1, 3]})) == [1, 3] and len(COUNTED) == 2
    assert rows(pd.DataFrame({"a": [1, 2]}), calls="y") == [1, 2] and COUNTED == ["x", "x", "y"]
