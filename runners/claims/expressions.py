"""Small expressions over named figures: the checks of data/claims.yaml and the computed figures in the book's prose.

Allowed: names with dots, numbers, + - * / **, comparisons (chains too), and, or, not, abs, min, max, and the tests of
order_tests.py between names and numbers. Nothing else is evaluated, because the text comes from data files. Every
result has its working: the expression with numbers in place of names. A test may be undecided (None); and, or, not
then give None where the answer depends on it.
"""

import ast
import contextlib
import math
import operator
from collections.abc import Callable
from typing import Any

from runners.claims.order_tests import TESTS, Measured, both
from runners.core.format import interval_text

OPERATIONS = {
    ast.Add: (operator.add, " + "),
    ast.Sub: (operator.sub, " − "),
    ast.Mult: (operator.mul, " × "),
    ast.Div: (operator.truediv, " / "),
    ast.Pow: (operator.pow, "^"),
}
TIGHT = (ast.Mult, ast.Div, ast.Pow)
COMPARISONS = {
    ast.Lt: (operator.lt, " < "),
    ast.LtE: (operator.le, " ≤ "),
    ast.Gt: (operator.gt, " > "),
    ast.GtE: (operator.ge, " ≥ "),
    ast.Eq: (operator.eq, " = "),
    ast.NotEq: (operator.ne, " ≠ "),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}
Figure = tuple[float, str]  # a value and how it is written


class NotAnExpression(ValueError):
    """The text holds something other than figures, arithmetic and comparisons."""


def evaluate(text: str, figure: Callable[[str], Figure]) -> tuple[Any, str]:
    """(value, working) of an expression; the value of a comparison is True or False, of a test also None (undecided).

    figure: returns the value and the text of a dotted name; its exceptions pass through. Where it has a method
    `bounds(name)`, that gives (low, high) of the figure, NaN where they are not known. NotAnExpression for text that is
    not allowed.
    """
    return _value(_tree(text), figure)


def _tree(text: str) -> ast.AST:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise NotAnExpression(f"not an expression: {text.strip()[:80]}") from error


def names(text: str) -> list[str]:
    """The dotted names in an expression, in order and each once; nothing is looked up."""
    seen: list[str] = []

    def note(name: str) -> Figure:
        seen.append(name)
        return 1.0, name

    # Every name is worth 1 here, so a difference of two may divide by zero. What was seen up to there is returned.
    with contextlib.suppress(SyntaxError, ZeroDivisionError):
        _value(ast.parse(text.strip(), mode="eval").body, note)
    return list(dict.fromkeys(seen))


def compared_as_points(text: str) -> list[str]:
    """The dotted names that stand outside of above, below and equal: their intervals are not looked at."""

    def walk(node: ast.AST) -> list[str]:
        if isinstance(node, ast.Attribute | ast.Name):
            return [_dotted(node)]
        if isinstance(node, ast.Call):
            tested = isinstance(node.func, ast.Name) and node.func.id in TESTS
            return [] if tested else [name for part in node.args for name in walk(part)]
        return [name for part in ast.iter_child_nodes(node) for name in walk(part)]

    return list(dict.fromkeys(walk(_tree(text))))


def _value(node: ast.AST, figure: Callable[[str], Figure]) -> tuple[Any, str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value, f"{node.value:,}"
    if isinstance(node, ast.Attribute | ast.Name):
        return figure(_dotted(node))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        function, sign = OPERATIONS[type(node.op)]
        (left, left_text), (right, right_text) = _value(node.left, figure), _value(node.right, figure)
        if isinstance(node.op, TIGHT):
            left_text, right_text = _wrapped(node.left, left_text), _wrapped(node.right, right_text)
        _no_test(node, left, right)
        try:
            return function(left, right), left_text + sign + right_text
        except OverflowError as error:
            raise NotAnExpression(f"too large: {ast.unparse(node)[:80]}") from error
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        value, text = _value(node.operand, figure)
        if isinstance(node.op, ast.Not):
            return None if value is None else not value, f"not {text}"
        _no_test(node, value)
        return -value, f"−{text}"
    if isinstance(node, ast.Compare) and all(type(op) in COMPARISONS for op in node.ops):
        parts = [_value(part, figure) for part in (node.left, *node.comparators)]
        _no_test(node, *(value for value, _ in parts))
        holds, text = True, parts[0][1]
        for op, (left, _), (right, right_text) in zip(node.ops, parts, parts[1:], strict=False):
            function, sign = COMPARISONS[type(op)]
            holds, text = holds and function(left, right), text + sign + right_text
        return holds, text
    if isinstance(node, ast.BoolOp):
        parts = [_value(part, figure) for part in node.values]
        values = [None if value is None else bool(value) for value, _ in parts]
        if isinstance(node.op, ast.And):
            return both(values), " and ".join(text for _, text in parts)
        neither = both([None if value is None else not value for value in values])
        return None if neither is None else not neither, " or ".join(text for _, text in parts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        parts = [_value(part, figure) for part in node.args]
        _no_test(node, *(value for value, _ in parts))
        value = FUNCTIONS[node.func.id](*(value for value, _ in parts))
        return value, f"{node.func.id}({', '.join(text for _, text in parts)})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TESTS:
        measured = [_measured(part, figure) for part in node.args]
        try:
            answer = TESTS[node.func.id](*(m for m, _ in measured))
        except (TypeError, ValueError) as error:  # a wrong number of arguments; a figure of 0 or less
            raise NotAnExpression(f"{ast.unparse(node)[:80]}: {error}") from error
        return answer, f"{node.func.id}({', '.join(text for _, text in measured)})"
    raise NotAnExpression(f"not an expression of figures: {ast.unparse(node)[:80]}")


def _no_test(node: ast.AST, *values: Any) -> None:
    """NotAnExpression where an undecided test is used as a figure."""
    if None in values:
        raise NotAnExpression(f"above, below and equal have answers, not figures: {ast.unparse(node)[:80]}")


def _measured(node: ast.AST, figure: Callable[[str], Figure]) -> tuple[Measured, str]:
    """A name's figure with its interval, or a number, and how it is written."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Measured(node.value, node.value, node.value), f"{node.value:,}"
    if not isinstance(node, ast.Attribute | ast.Name):
        raise NotAnExpression(f"above, below and equal take names and numbers, not {ast.unparse(node)[:80]}")
    name = _dotted(node)
    point, text = figure(name)
    low, high = figure.bounds(name) if hasattr(figure, "bounds") else (math.nan, math.nan)
    return Measured(point, low, high), text if math.isnan(low) else interval_text(point, low, high)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise NotAnExpression(f"not a figure's name: {ast.unparse(node)[:80]}")


def _wrapped(node: ast.AST, text: str) -> str:
    """The text in brackets where a sum stands inside a product: Python's tree no longer has the brackets."""
    loose = isinstance(node, ast.BinOp) and not isinstance(node.op, TIGHT)
    return f"({text})" if loose else text
