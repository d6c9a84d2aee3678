"""Prompt files as people have them, read into prompt sets: `specverdict ... --prompts PATH`, `prompt_sets: [PATH]`.

prompt_forms.py says which files are read, prompt_rows.py what a row of one may be. In a profile a set goes by its
file's name, so that no path gets into a ledger: `workload.prompt_files` holds name -> path.
"""

import functools
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runners.core.errors import UserError
from runners.profiles import prompt_forms, prompt_rows, prompts
from runners.profiles.prompts import Prompt, PromptSet

MOST = 2000  # prompts of one set: more would only fill the memory of the process that measures
REPEATED = "prompts that stand there twice"


def is_path(entry: str) -> bool:
    """Does the entry of `prompt_sets` name a file, and not a set of data/prompts?"""
    path, _, _ = _parts(entry)
    return "/" in path or any(ending in prompt_forms.ENDINGS for ending in prompt_forms.endings(Path(path)))


def name_of(place: str) -> str:
    """The set's name, from the file's and the column's; `own-` before one that would be taken for a shipped set.

    >>> name_of("~/logs/support tickets.jsonl.gz"), name_of("faq.csv#question"), name_of("chat.txt")
    ('support-tickets', 'faq-question', 'own-chat')
    """
    path, column, _ = _parts(place)
    stem = Path(path).name
    while Path(stem).suffix.lower() in (".gz", *prompt_forms.ENDINGS):
        stem = Path(stem).stem
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{stem}-{column}" if column else stem).strip("-.") or "prompts"
    return f"own-{name}" if name in prompts.available() else name


def load(name: str, files: Mapping[str, str]) -> PromptSet:
    """A set of a profile by its name. files: the profile's `workload.prompt_files`; all other sets are shipped ones."""
    base, at, length = name.partition("@")
    if base not in files:
        return prompts.load(name)
    found = read(files[base], base)
    return prompts.with_context(found, length) if at else found


def read(place: str, name: str | None = None) -> PromptSet:
    """The prompts of a file. place: its path (`~` is the home folder), `#COLUMN` after it for a table or JSON objects
    with unusual keys, `@512` for about 512 tokens of other text before each question.

    Ids are the file's own, or made from the content, and begin with the set's name: they are unique over all sets. What
    stands there twice is asked once; of more than MOST prompts as many are taken evenly. The set's `notes` say both.

    Raises UserError that names the file, and the line of a row that cannot be understood.
    """
    path, column, length = _parts(place)
    file = Path(path).expanduser()
    try:
        seen = file.stat()
    except OSError as error:
        raise UserError(f"Prompts {path} cannot be read ({error.strerror}); give the path of a file.") from error
    if file.is_dir():
        raise UserError(f"Prompts {path} must be a file, and it is a folder; name one file in it.")
    # The settings of each cell ask for the set: it is read once, and again where the file has changed.
    found = _read(file, column, name or name_of(place), seen.st_mtime_ns, seen.st_size)
    return prompts.with_context(found, length) if length else found


def name_paths(content: dict[str, Any], folder: Path) -> None:
    """In a profile as it was written: each path among its prompt sets becomes a name, and a row of `prompt_files`.

    folder: of the profile's file; relative paths begin there. Raises UserError where two files have one name.
    """
    workload = content.get("workload")
    if not isinstance(workload, dict):
        return
    given = workload.get("prompt_files")
    files = {k: _whole(str(v), folder) for k, v in given.items()} if isinstance(given, dict) else {}

    def name(entry: Any) -> Any:
        if not isinstance(entry, str) or not is_path(entry):
            return entry
        known, place, (_, _, length) = name_of(entry), _whole(entry, folder), _parts(entry)
        if files.setdefault(known, place) != place:
            raise UserError(f"Prompts {files[known]} and {place} have one name, {known}; rename one of the files.")
        return f"{known}@{length}" if length else known

    configurations = content.get("configurations")
    for part in (workload, *(configurations.values() if isinstance(configurations, dict) else ())):
        if isinstance(part, dict) and isinstance(part.get("prompt_sets"), list):
            part["prompt_sets"] = [name(entry) for entry in part["prompt_sets"]]
    if isinstance(workload.get("mix"), dict):
        workload["mix"] = {name(entry): share for entry, share in workload["mix"].items()}
    if files:
        workload["prompt_files"] = files


def _parts(place: str) -> tuple[str, str | None, str | None]:
    """(path, column, tokens of context) of `path#column@512`."""
    path, column, length = place, "", ""
    before, _, after = path.rpartition("@")
    if before and after.isdigit():
        path, length = before, after
    before, _, after = path.rpartition("#")
    if after and Path(before).suffix.lower() in (".gz", *prompt_forms.ENDINGS):
        path, column = before, after
    return path, column or None, length or None


def _whole(place: str, folder: Path) -> str:
    """`path#column` with the whole path, and `~` for the home folder: a profile may be shown to others."""
    path, column, _ = _parts(place)
    whole, home = Path(os.path.abspath(folder / Path(path).expanduser())), Path.home()
    shown = f"~/{whole.relative_to(home)}" if whole.is_relative_to(home) else str(whole)
    return f"{shown}#{column}" if column else shown


@functools.lru_cache(maxsize=16)
def _read(path: Path, column: str | None, name: str, _changed: int, _size: int) -> PromptSet:
    left_out: Counter[str] = Counter()
    found: dict[str, Prompt] = {}  # by what is asked
    for where, row in prompt_forms.rows(path):
        prompt = prompt_rows.prompt_of(row, where, column, left_out)
        if prompt is not None:
            asked = prompt_rows.digest(prompt)
            left_out[REPEATED] += asked in found
            found.setdefault(asked, prompt)
    if not found:
        raise UserError(f"Prompts {path.name} must hold at least one prompt; {prompt_forms.HELP}.")
    notes = [f"left out: {n:,} {what}" for what, n in left_out.items() if n]
    kept = list(found.items())
    if len(kept) > MOST:
        notes.append(f"{MOST:,} of {len(kept):,} prompts are asked, taken evenly")
        kept = [kept[i * len(kept) // MOST] for i in range(MOST)]
    made = _with_ids(kept, name)
    asked_for = json.dumps([[p.id, p.messages, p.fields] for p in made], sort_keys=True)
    return PromptSet(name, made, hashlib.sha256(asked_for.encode()).hexdigest(), tuple(notes))


def _with_ids(found: list[tuple[str, Prompt]], name: str) -> tuple[Prompt, ...]:
    """The prompts with ids that begin with the set's name. found: the digest of each one's content, and the prompt."""
    times = Counter(prompt.id for _, prompt in found)
    made = []
    for digest, prompt in found:
        own = prompt.id if times[prompt.id] == 1 else "-".join(filter(None, (prompt.id, digest[:10])))
        made.append(replace(prompt, id=f"{name}-{own or digest[:10]}"))
    return tuple(made)
