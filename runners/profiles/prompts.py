"""Prompt sets: what every configuration of a profile is asked, in the same order.

A set is one JSONL file, `data/prompts/<set id>.jsonl`; its README says what each set is for. Files that somebody has
elsewhere and in other forms are read by prompt_files.py.
"""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runners.core import json_text
from runners.core.errors import UserError
from runners.core.paths import DATA
from runners.profiles import filler

FOLDER = DATA / "prompts"
ROLES = ("system", "user", "assistant")
Message = dict[str, Any]  # as a chat endpoint takes it: role, content, and what a tool's call needs


@dataclass(frozen=True)
class Prompt:
    """One conversation, as a chat endpoint takes it: the engine applies the chat template.

    `messages` is a tuple of {"role", "content"}; the last one is the user's, or a tool's answer. `fields`: what else a
    request must hold to ask this (tools, for example).
    """

    id: str
    topic: str
    # Dictionaries, because they go into a request as they are; they cannot be hashed.
    messages: tuple[Message, ...] = field(hash=False)
    fields: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def plain(self) -> bool:
        """Texts of system, user and assistant alone, which every chat template takes?"""
        return not self.fields and all(m["role"] in ROLES and isinstance(m["content"], str) for m in self.messages)

    @property
    def texts(self) -> list[str]:
        """The texts of its messages; those of images and other parts are none."""
        contents = [m["content"] for m in self.messages]
        parts = [part for content in contents if isinstance(content, list) for part in content]
        found = [part.get("text") for part in parts if isinstance(part, dict)]
        return [text for text in (*contents, *found) if isinstance(text, str)]


@dataclass(frozen=True)
class PromptSet:
    """The prompts of one file, in file order. `sha256` (64 hex digits) is over the bytes of a shipped file, and over
    what is asked where somebody's own file was read. `notes` say what of a file is not asked.
    """

    id: str
    prompts: tuple[Prompt, ...]
    sha256: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def longest(self) -> int:
        """About how many tokens the longest of its prompts has, without those of the chat template."""
        return max(sum(map(filler.about_tokens, prompt.texts)) for prompt in self.prompts)

    def take(self, n: int, offset: int = 0) -> list[Prompt]:
        """`n` prompts from position `offset` on, wrapping round at the end of the set.

        No randomness: the same `n` and `offset` (repeat x n, say) give the same prompts. So two configurations answer
        the same questions in each repeat, which keeps their comparison paired, and the repeats together go through
        the whole set.
        """
        if n < 0:
            raise ValueError(f"cannot take {n} prompts from {self.id!r}")
        return [self.prompts[(offset + i) % len(self.prompts)] for i in range(n)]


def available(folder: Path = FOLDER) -> list[str]:
    """The ids of the sets in `folder`, sorted; empty when there is no such folder."""
    return sorted(path.stem for path in Path(folder).glob("*.jsonl"))


def load(set_id: str, folder: Path = FOLDER) -> PromptSet:
    """Read and check one set; `chat@512` is the set `chat` with about 512 tokens of other text before each question.

    Raises UserError for an unknown set, a file that is not UTF-8 text, and, with file and line, for
    bad JSON, a missing or malformed key or an id that occurs twice; also for a set without prompts.
    """
    name, at, length = set_id.partition("@")
    if at:
        return with_context(load(name, folder), length, folder)
    # Looked up in the listing rather than on disk, so that an id can never be a path elsewhere.
    known = available(folder)
    if set_id not in known:
        exist = f"these exist: {', '.join(known)}" if known else "there are none"
        own = "name a file of your own by its path and ending, as in mine.jsonl"
        raise UserError(f"unknown prompt set {set_id!r} in {folder}: {exist}; {own}.")
    path = Path(folder) / f"{set_id}.jsonl"
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; check the file.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8.") from error

    prompts: list[Prompt] = []
    first_line: dict[str, int] = {}
    # Not splitlines(): it also breaks at U+2028 and the like, which JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        prompt = _parse(line, f"{path}, line {number}")
        if prompt.id in first_line:
            raise UserError(
                f"{path}, line {number}: the id {prompt.id!r} was used in line {first_line[prompt.id]}; "
                "give each prompt its own."
            )
        first_line[prompt.id] = number
        prompts.append(prompt)
    if not prompts:
        raise UserError(f"{path} must hold at least one prompt: a JSON object in one line.")
    return PromptSet(set_id, tuple(prompts), hashlib.sha256(data).hexdigest())


def with_context(base: PromptSet, length: str, folder: Path = FOLDER) -> PromptSet:
    """A set whose last questions begin with passages of the set `edit`: another context length, the same questions.

    The passages differ from prompt to prompt, so that no prefix is shared. UserError unless the length is an integer
    >= 1 and each last question a plain text.
    """
    set_id = f"{base.id}@{length}"
    if not length.isdigit() or not int(length):
        raise UserError(f"unknown prompt set {set_id!r}: after @ there must be a number of tokens >= 1.")
    passages = [p.messages[-1]["content"] for p in load("edit", folder).prompts]
    made = []
    for i, prompt in enumerate(base.prompts):
        last = prompt.messages[-1]
        if last["role"] != "user" or not isinstance(last["content"], str):
            raise UserError(f"prompt set {set_id!r}: prompt {prompt.id} must end in a plain question; leave @ out.")
        text = filler.filled(passages, i, int(length))
        asked = f"Here are some notes.\n\n{text}\n\nThe notes end here. Leave them aside and answer this."
        messages = (*prompt.messages[:-1], last | {"content": f"{asked}\n\n{last['content']}"})
        made.append(replace(prompt, id=f"{prompt.id}@{length}", messages=messages))
    asked_for = "".join(p.messages[-1]["content"] for p in made)
    checksum = hashlib.sha256(f"{base.sha256} {asked_for}".encode()).hexdigest()
    return replace(base, id=set_id, prompts=tuple(made), sha256=checksum)


def _parse(line: str, where: str) -> Prompt:
    try:
        row = json_text.loads(line)
    except ValueError as error:
        raise UserError(f"{where}: not valid JSON ({error}); each line must be one object.") from error
    if not isinstance(row, dict):
        raise UserError(f"{where}: each line must be a JSON object with id, topic and messages.")
    for key in ("id", "topic", "messages"):
        if key not in row:
            raise UserError(f"{where}: the key {key!r} is missing; add it.")
    for key in ("id", "topic"):
        if not _is_text(row[key]):
            raise UserError(f"{where}: {key!r} must be a text and not empty.")
    messages = row["messages"]
    if not isinstance(messages, list) or not messages:
        raise UserError(f"{where}: 'messages' must be a list of at least one message.")
    for position, message in enumerate(messages):
        if (
            not isinstance(message, dict)
            or set(message) != {"role", "content"}
            or message["role"] not in ROLES
            or not _is_text(message["content"])
        ):
            raise UserError(
                f"{where}: message {position + 1} must have a role ({', '.join(ROLES)}), "
                "a content that is not empty, and no other key."
            )
    if messages[-1]["role"] != "user":
        raise UserError(f"{where}: the last message must be the user's: it is what is answered.")
    return Prompt(row["id"], row["topic"], tuple(messages))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
