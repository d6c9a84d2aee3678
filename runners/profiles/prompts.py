"""Prompt sets: what every configuration of a profile is asked, in the same order.

A set is one JSONL file, `data/prompts/<set id>.jsonl`; its README says what each set is for.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from runners.core.errors import UserError
from runners.core.paths import DATA

FOLDER = DATA / "prompts"
ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Prompt:
    """One conversation, as a chat endpoint takes it: the engine applies the chat template.

    `messages` is a tuple of {"role", "content"}; the last one is the user's.
    """

    id: str
    topic: str
    # Dictionaries, because they go into a request as they are; they cannot be hashed.
    messages: tuple[dict[str, str], ...] = field(hash=False)


@dataclass(frozen=True)
class PromptSet:
    """The prompts of one file, in file order; `sha256` is over the file's bytes (64 hex digits)."""

    id: str
    prompts: tuple[Prompt, ...]
    sha256: str

    def __len__(self) -> int:
        return len(self.prompts)

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


# Words, digits and signs. The estimate only has to be near: a cell's real context is counted by the engine.
_PIECES = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_")


def load(set_id: str, folder: Path = FOLDER) -> PromptSet:
    """Read and check one set; `chat@512` is the set `chat` with about 512 tokens of other text before each question.

    Raises UserError for an unknown set, a file that is not UTF-8 text, and, with file and line, for
    bad JSON, a missing or malformed key or an id that occurs twice; also for a set without prompts.
    """
    if "@" in set_id:
        return with_context(set_id, folder)
    # Looked up in the listing rather than on disk, so that an id can never be a path elsewhere.
    known = available(folder)
    if set_id not in known:
        exist = f"these exist: {', '.join(known)}" if known else "there are none"
        raise UserError(f"unknown prompt set {set_id!r} in {folder}: {exist}.")
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


def with_context(set_id: str, folder: Path = FOLDER) -> PromptSet:
    """A set whose prompts begin with passages of the set `edit`: another context length, the same questions.

    The passages differ from prompt to prompt, so that no prefix is shared. UserError unless the length is an integer
    >= 1.
    """
    name, _, length = set_id.partition("@")
    if not length.isdigit() or not int(length):
        raise UserError(f"unknown prompt set {set_id!r}: after @ there must be a number of tokens >= 1.")
    base, filler = load(name, folder), load("edit", folder)
    passages = [p.messages[-1]["content"] for p in filler.prompts]
    made = []
    for i, prompt in enumerate(base.prompts):
        text = _filled(passages, i, int(length))
        last = prompt.messages[-1]
        asked = f"Here are some notes.\n\n{text}\n\nThe notes end here. Leave them aside and answer this."
        asked += f"\n\n{last['content']}"
        made.append(Prompt(f"{prompt.id}@{length}", prompt.topic, (*prompt.messages[:-1], last | {"content": asked})))
    asked_for = "".join(p.messages[-1]["content"] for p in made)
    return PromptSet(set_id, tuple(made), hashlib.sha256(f"{base.sha256} {asked_for}".encode()).hexdigest())


def about_tokens(text: str) -> int:
    """About how many tokens a tokenizer would make: one for a word of up to six letters, for a digit and for a sign.

    A count by characters alone would be several times too small for numbers, which tokenizers split into digits.
    """
    return sum(1 + (len(piece) - 1) // 6 for piece in _PIECES.findall(text))


def _filled(passages: list[str], first: int, tokens: int) -> str:
    """Whole words of the passages from number `first` on, until they are about that many tokens."""
    words: list[str] = []
    count, passage = 0, first
    while count < tokens:
        for word in (passages[passage % len(passages)].strip() + "\n\n").split(" "):
            words.append(word)
            count += about_tokens(word)
            if count >= tokens:
                break
        passage += 1
    return " ".join(words).strip()


def _parse(line: str, where: str) -> Prompt:
    try:
        row = json.loads(line)
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
