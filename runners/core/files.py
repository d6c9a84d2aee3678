"""Files that a person wrote or an interruption cut short: read whole and of the right kind, or refused in one sentence.

Every function raises UserError that names the file, what must be true of it and what to do.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any, TypeVar

import yaml

from runners.core import json_text, secrets
from runners.core.errors import UserError

# Of a YAML file: values, and levels of mappings and lists. A profile has some hundred, and less than ten.
MOST_VALUES = 1_000_000
DEEPEST = 50
Row = dict[str, Any]
Content = TypeVar("Content", dict[str, Any], list[Any])
BINARY = (".parquet", ".gz", ".png")  # compressed: what is written there is masked before


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML's safe loader, but a key given twice in a mapping is an error: the first value would be lost in silence.

    ruamel.yaml refuses such keys too, but it reads YAML 1.2, where `no` and `on` are texts: published profiles were
    read by YAML 1.1.
    """


def _mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str | int | float | bool] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":  # `<<: *other`: what it brings may be given again
            continue
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool):
            continue
        if key in seen:
            raise yaml.MarkedYAMLError(problem=f"key `{key}` is given twice", problem_mark=key_node.start_mark)
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _content(text: str) -> Any:
    loader = _UniqueKeyLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        values, depth = _size(node, {})
        if values > MOST_VALUES or depth > DEEPEST:
            problem = f"more than {MOST_VALUES:,} values or {DEEPEST} levels (each alias is what it names)"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node: yaml.Node, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """(values, levels) of what a node stands for. An alias is the node that it names: a short text with aliases of
    aliases stands for more than memory holds, and one inside itself has no end.
    """
    if id(node) not in known:
        known[id(node)] = (MOST_VALUES + 1, 0)  # met again before it is complete: it holds itself
        inner = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
        sizes = [] if isinstance(node, yaml.ScalarNode) else [_size(part, known) for part in inner]
        known[id(node)] = (1 + sum(values for values, _ in sizes), 1 + max((levels for _, levels in sizes), default=0))
    return known[id(node)]


def text_of(path: Path, what: str) -> str:
    """The file's text; UserError when it cannot be opened or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{what} must be UTF-8 text (byte {error.start} is not); save it as UTF-8.") from error
    except OSError as error:
        raise UserError(f"{what} cannot be read ({error.strerror}); restore it.") from error


def read_yaml(path: Path, what: str) -> Row:
    """A YAML file that holds a mapping; `what` names it in the sentence, which tells the line of the first fault."""
    text = text_of(path, what)
    try:
        # Safe: no tag of a profile from somebody else can run code.
        content = _content(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "an unreadable character"
        raise UserError(f"{what}{line} is not valid YAML: {problem}.") from error
    except RecursionError as error:
        raise UserError(f"{what} is nested too deeply; no mapping or list needs {DEEPEST} levels.") from error
    except ValueError as error:  # an impossible date, a malformed number
        raise UserError(f"{what} is not valid YAML: {str(error).partition(';')[0]}; put quotes around it.") from error
    if not isinstance(content, dict):
        raise UserError(f"{what} must hold a mapping; begin its lines with `key: value`.")
    return content


def read_json(path: Path, kind: type[Content], advice: str) -> Content:
    """A JSON file that holds a `kind` (dict or list); `advice` ends the sentence when it does not."""
    what = f"{path.parent.name}/{path.name}"
    try:
        content = json_text.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UserError(f"{what} must be UTF-8 text; {advice}.") from error
    except ValueError as error:
        raise UserError(f"{what} is not JSON ({_words(error)}); {advice}.") from error
    except OSError as error:
        raise UserError(f"{what} cannot be read ({error.strerror}); {advice}.") from error
    if not isinstance(content, kind):
        raise UserError(f"{what} must hold a {'list' if kind is list else 'mapping'}; {advice}.")
    return content


def _words(error: ValueError) -> str:
    """Why a text is not JSON, without the place, which the caller names."""
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


def write_atomic(path: Path, content: bytes, hide: bool = True) -> None:
    """Replace a file as a whole. When that fails (a full disk), the old file is left as it was.

    hide: mask secrets; not in a file that only this process reads back.
    """
    if hide and path.suffix not in BINARY:
        content = secrets.masked_bytes(content)
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "wb") as handle:
            handle.write(content)
            # On the disk before it gets its name: after a power cut the name must not lead to an empty file.
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):  # the first error is the one to report
            part.unlink()
        raise UserError(
            f"{path} could not be written ({error.strerror}); finished cells are kept, run again."
        ) from error


def write_text(path: Path, text: str) -> None:
    """`write_atomic` of a text, in UTF-8."""
    write_atomic(path, text.encode("utf-8", errors="surrogateescape"))


def json_lines(path: Path) -> list[tuple[str, Row]]:
    """(where, object) of each line of a JSONL file, blank lines left out. `where` is for messages: file and line."""
    rows = []
    # The folder tells which configuration's cells.jsonl it is.
    text = text_of(path, f"{path.parent.name}/{path.name}")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path.parent.name}/{path.name}, line {number}"
        try:
            row = json_text.loads(line)
        except ValueError as error:
            advice = "remove that line and run the report again"
            raise UserError(f"{where} is not JSON ({_words(error)}); {advice}.") from error
        if not isinstance(row, dict):
            raise UserError(f"{where} must be a JSON object; remove that line and run the report again.")
        rows.append((where, row))
    return rows


class KeptRows:
    """A JSONL file of rows in groups; rows with the same values of the fields `by` are a group.

    Work that resumes adds a group at a time. A group made from other facts (an earlier drafter, another text) is
    replaced by the new one.
    """

    def __init__(self, path: Path, by: list[str]):
        self.path, self.by = path, by
        self.rows = [row for _, row in json_lines(path)] if path.is_file() else []

    def has(self, facts: Row) -> bool:
        """Whether there is a row made from exactly these facts."""
        return any(all(row.get(k) == v for k, v in facts.items()) for row in self.rows)

    def replace(self, facts: Row, rows: list[Row]) -> None:
        """Replace the group that `facts` names by `rows`, each with `facts` added, and write the file."""
        others = [row for row in self.rows if any(row.get(k) != facts[k] for k in self.by)]
        self.rows = others + [row | facts for row in rows]
        write_atomic(self.path, "".join(json.dumps(row) + "\n" for row in self.rows).encode())
