"""Files that a person wrote or an interruption tore: read whole and of the right kind, or refused in one sentence."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import yaml

from runners.core.errors import UserError

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


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file whole; a full disk is one sentence and leaves the old file as it was."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise UserError(
            f"{path} could not be written ({error.strerror}); finished cells are kept, run again."
        ) from error


def json_lines(path: Path) -> list[tuple[str, dict]]:
    """(where, object) of each line of a JSONL file; UserError names the file and the line that cannot be read."""
    rows = []
    text = text_of(path, f"{path.parent.name}/{path.name}")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path.parent.name}/{path.name}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{where} is not JSON ({error.msg}); remove that line and run the report again.") from error
        if not isinstance(row, dict):
            raise UserError(f"{where} is no JSON object; remove that line and run the report again.")
        rows.append((where, row))
    return rows


class KeptRows:
    """A JSONL file of rows in groups, each group named by its values of `by`: work that resumes adds a group at a time,
    and a group made from other facts (an earlier drafter, another text) gives way to the new one.
    """

    def __init__(self, place: Path, by: list[str]):
        self.place, self.by = place, by
        self.rows = [row for _, row in json_lines(place)] if place.is_file() else []

    def has(self, facts: dict) -> bool:
        """Is there a row made from these very facts?"""
        return any(all(row.get(k) == v for k, v in facts.items()) for row in self.rows)

    def replace(self, facts: dict, rows: list[dict]) -> None:
        """Put `rows`, each with `facts` in it, in place of the group that `facts` names, and write the file."""
        others = [row for row in self.rows if any(row.get(k) != facts[k] for k in self.by)]
        self.rows = others + [row | facts for row in rows]
        write_atomic(self.place, "".join(json.dumps(row) + "\n" for row in self.rows).encode())
