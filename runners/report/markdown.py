"""Markdown that several chapters write: tables, code, and text from outside as nothing but text."""

import html
import re

import pandas as pd

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SIGNS = re.compile(r"([\\`*_{}\[\]#|~$])")  # those that CommonMark or the book's extensions give a meaning
_FENCED = re.compile(r"(`{3,})\w*\n(.*)\n\1", re.DOTALL)


def pipe_table(frame: pd.DataFrame) -> str:
    """A DataFrame of short texts as a Markdown table."""
    lines = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def escaped(text: str) -> str:
    """Text from outside (a reason that quotes an engine) for a Markdown sentence: no tag, link or heading in it."""
    return _SIGNS.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))


def code_span(text: str) -> str:
    """Text from outside as code within a sentence, whatever backticks it holds."""
    line = " ".join(text.split())
    fence = "`" * (_longest_run(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Lines of code as a block that none of them can end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def tagless(text: str) -> str:
    """Markdown in which nothing becomes an HTML tag. A block of `fenced` is code and stays as it is."""
    block = _FENCED.fullmatch(text)
    if block and block[1] not in block[2]:
        return text
    return _TAG.sub("&lt;", text)
