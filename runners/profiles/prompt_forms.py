"""The forms of a prompt file: bytes in, its rows out, each with its file and line.

JSON Lines or JSON, a table with a header (CSV, TSV), or plain text, a prompt a line; gzipped or not.
"""

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runners.core import json_text
from runners.core.errors import UserError
from runners.profiles import prompt_rows

LINES, JSON, TABLES, TEXT = (".jsonl", ".ndjson"), (".json",), (".csv", ".tsv"), (".txt", ".text", ".md")
ENDINGS = (*LINES, *JSON, *TABLES, *TEXT)
HELP = "it may be JSON Lines or JSON of OpenAI messages or ShareGPT, a CSV file with a header, or a prompt a line"
Rows = Iterator[tuple[str, Any]]


def endings(path: Path) -> list[str]:
    """The last endings of a file's name but that of gzip, in small letters.

    >>> endings(Path("mine.JSONL.gz"))
    ['.jsonl']
    """
    return [suffix.lower() for suffix in path.suffixes[-2:] if suffix.lower() != ".gz"]


def rows(path: Path) -> Rows:
    """(file and line, for messages; row) of each row: a text, or what JSON or a table holds.

    Raises UserError for a file that cannot be read, is not UTF-8 text, or is broken JSON or CSV.
    """
    text, ending = _text(path), (endings(path) or [""])[-1]
    if ending in TABLES:
        yield from _table(text, path, "\t" if ending == ".tsv" else None)
    elif ending in (*LINES, *JSON) or _begins_as_json(text):
        yield from _json(text, path, by_line=ending in LINES)
    else:
        yield from ((where, line.strip()) for where, line in _lines(text, path))


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"Prompts {path.name} must be UTF-8 text (byte {error.start} is not); save it so.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"Prompts {path.name} cannot be read ({error}); check the file.") from error


def _lines(text: str, path: Path) -> Iterator[tuple[str, str]]:
    # Not splitlines(): it also breaks at U+2028 and the like, which JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"Prompts {path.name}, line {number}", line


def _begins_as_json(text: str) -> bool:
    """An object, or a list of objects, lists or texts: a line of plain text may begin with a bracket too."""
    if not re.match(r'\s*(\{\s*"|\[\s*[\[{"])', text):
        return False
    try:
        json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return False
    return True


def _json(text: str, path: Path, by_line: bool) -> Rows:
    """by_line: the file's name says that each line is a value of its own."""
    try:
        whole = json_text.loads(text)
    except json.JSONDecodeError as error:
        if not by_line and not _begins_as_json(text.lstrip().partition("\n")[0]):
            raise _not_json(f"Prompts {path.name}, line {error.lineno}", error) from error
    except ValueError as error:
        raise _not_json(f"Prompts {path.name}", error) from error
    else:
        for number, row in enumerate(_listed(whole), 1):
            yield f"Prompts {path.name}, prompt {number}", row
        return
    for where, line in _lines(text, path):
        try:
            row = json_text.loads(line)
        except ValueError as error:
            raise _not_json(where, error) from error
        yield where, row


def _not_json(where: str, error: ValueError) -> UserError:
    words = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return UserError(f"{where}: not valid JSON ({words}); correct it, or name the file .txt if it is plain text.")


def _listed(whole: Any) -> list[Any]:
    """The rows of one JSON value: a list of them, one conversation, or an object around a list."""
    if isinstance(whole, list) and whole and all(isinstance(m, dict) and {"role", "from"} & set(m) for m in whole):
        return [whole]
    if isinstance(whole, list):
        return whole
    if isinstance(whole, dict) and not {*prompt_rows.CONVERSATIONS, *prompt_rows.TEXTS, "body"} & set(whole):
        lists = [value for value in whole.values() if isinstance(value, list)]
        if len(lists) == 1:
            return _listed(lists[0])
    return [whole]


def _table(text: str, path: Path, delimiter: str | None) -> Rows:
    """delimiter: None to take the one that stands in the header most often."""
    csv.field_size_limit(sys.maxsize)  # a prompt with a long context is longer than the default of 128 KiB
    header = text.partition("\n")[0]
    found = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter or max(",;\t|", key=header.count))
    try:
        for row in found:
            yield f"Prompts {path.name}, line {found.line_num}", {k: v for k, v in row.items() if k is not None}
    except csv.Error as error:
        raise UserError(f"Prompts {path.name}, line {found.line_num}: {error}; save it as CSV again.") from error
