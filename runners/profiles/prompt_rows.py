"""One row of a prompt file as a conversation: OpenAI messages, ShareGPT turns, a batch request, or a prompt's text.

A row is what the file's form gives (prompt_files.py): a text, a list of messages, or an object. Of an object the first
of these keys counts that holds something, in capitals or not. What the row says of sampling and length is left out: the
profile decides it, so that all answers compare.
"""

import hashlib
import json
from collections import Counter
from typing import Any

from runners.core import json_text
from runners.core.errors import UserError
from runners.profiles.prompts import Message, Prompt

CONVERSATIONS = ("messages", "conversations", "conversation", "turns")
TEXTS = ("prompt", "question", "instruction", "query", "text", "input", "content")
SYSTEMS = ("system", "system_prompt")
IDS = ("id", "prompt_id", "question_id", "conversation_id", "custom_id", "uuid")
TOPICS = ("topic", "category", "task")
FIELDS = ("tools", "tool_choice", "functions", "response_format")  # request fields that belong to the question
MORE = ("name", "tool_calls", "tool_call_id", "function_call", "reasoning", "reasoning_content")  # of a message

# Roles of chat endpoints, and what ShareGPT and its relatives write for them.
ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "bing", "bard", "model", "bot", "function_call"), "assistant"),
    **dict.fromkeys(("tool", "observation"), "tool"),
    **{role: role for role in ("system", "developer", "function")},
}
ANSWERED = ("user", "tool", "function")  # who the engine answers
BEFORE = ("system", "developer")  # who may speak before the first question

UNASKED = "rows in which nobody asks anything"
LATER = "later turns of rows that hold questions alone (the answers between them are not in the file)"


def prompt_of(row: Any, where: str, column: str | None, left_out: Counter[str]) -> Prompt | None:
    """The conversation of a row up to what is answered last; None where nobody asks anything.

    where: file and line, for messages. column: the key that holds the prompt, where the user named one. left_out counts
    what is not asked, by what it is. Raises UserError for a row that holds no prompt, and for a malformed message.
    """
    if isinstance(row, str):
        row = {"prompt": row}
    if isinstance(row, list):
        row = {"messages": row}
    if not isinstance(row, dict):
        raise UserError(f"{where}: a row must be a text, an object or a list of messages; it is {row!r:.40}.")
    named = {str(key).strip().lower(): value for key, value in row.items()}
    request = named["body"] if isinstance(named.get("body"), dict) else named  # a line of OpenAI's batch format
    messages = _asked(_messages(request, where, column, left_out))
    if not messages:
        left_out[UNASKED] += 1
        return None
    fields = {name: request[name] for name in FIELDS if request.get(name)}
    return Prompt(_first_word(named, IDS), _first_word(named, TOPICS), tuple(messages), fields)


def digest(prompt: Prompt) -> str:
    """The SHA-256 of what is asked (64 hex digits): equal for two prompts that an engine cannot tell apart."""
    asked = json.dumps([prompt.messages, prompt.fields], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()


def _messages(row: dict[str, Any], where: str, column: str | None, left_out: Counter[str]) -> list[Message]:
    """All messages of a row, as a chat endpoint takes them."""
    key = _key(row, where, column)
    given = row.get(key)
    if isinstance(given, str) and given.lstrip().startswith("[{"):  # a table's cell may hold a conversation as JSON
        given = _from_json(given)
    if isinstance(given, dict):
        given = [given]
    if isinstance(given, list) and given and all(isinstance(turn, str) for turn in given):
        left_out[LATER] += len(given) - 1
        given = given[0]
    if given is None:
        return []
    if isinstance(given, str):
        if key == "content" and ROLES.get(str(row.get("role", "user")).lower()) != "user":  # somebody else's message
            return []
        more = row.get("input") if key == "instruction" else None
        found: list[Message] = [{"role": "user", "content": f"{given}\n\n{more}" if more else given}]
    elif isinstance(given, list):
        found = [_message(m, f"{where}: message {number}") for number, m in enumerate(given, 1)]
    else:
        raise UserError(f"{where}: {key!r} must be a text or a list of messages; it is {given!r:.40}.")
    system = _first_word(row, SYSTEMS)
    if system and not any(m["role"] in BEFORE for m in found):
        found.insert(0, {"role": "system", "content": system})
    return found


def _key(row: dict[str, Any], where: str, column: str | None) -> str:
    """The key that holds the prompt: the one that the user named, a usual one, or the only one."""
    if column is not None:
        if column.strip().lower() not in row:
            raise UserError(f"{where}: there is no {column!r}; there is {', '.join(row)}.")
        return column.strip().lower()
    usual = [key for key in (*CONVERSATIONS, *TEXTS) if key in row]
    if usual:
        return next((key for key in usual if row[key]), usual[0])
    if len(row) == 1:
        return next(iter(row))
    raise UserError(
        f"{where}: no prompt was found in {', '.join(row) or 'an empty row':.80}; name what holds it behind the file's "
        "path, as in prompts.csv#question."
    )


def _message(given: Any, where: str) -> Message:
    """One message with the role and the keys of a chat endpoint; a content of several parts is kept as it is."""
    if not isinstance(given, dict):
        raise UserError(f"{where} must be an object with a role and a content; it is {given!r:.40}.")
    says = given.get("role", given.get("from"))
    role = ROLES.get(says.strip().lower()) if isinstance(says, str) else None
    if role is None:
        raise UserError(f"{where} must have a role ({', '.join(ROLES)}); it has {says!r:.40}.")
    content = given.get("content", given.get("value", given.get("text")))
    found: Message = {"role": role, "content": content}
    found |= {key: given[key] for key in MORE if given.get(key)}
    if content is None and not ("tool_calls" in found or "function_call" in found):
        raise UserError(f"{where} must have a content.")
    if content is not None and not isinstance(content, str | list):
        raise UserError(f"{where} must have a text or a list of parts as its content; it is {content!r:.40}.")
    return found


def _asked(messages: list[Message]) -> list[Message]:
    """Up to the last message that is answered. An answer at the end is what the engine is to write, and one before the
    first question is left out: chat templates refuse a conversation that begins with it. Empty where nobody asks.
    """
    users = [i for i, m in enumerate(messages) if m["role"] == "user"]
    last = max((i for i, m in enumerate(messages) if m["role"] in ANSWERED), default=None)
    if not users or last is None or not _says_something(messages[last]):
        return []
    head = [m for m in messages[: users[0]] if m["role"] in BEFORE]
    return head + messages[users[0] : last + 1]


def _says_something(message: Message) -> bool:
    content = message["content"]
    return bool(content.strip() if isinstance(content, str) else content)


def _first_word(row: dict[str, Any], keys: tuple[str, ...]) -> str:
    """The first of these that holds a text or a number, as a text; empty where none does."""
    found = (row[key] for key in keys if isinstance(row.get(key), str | int) and not isinstance(row[key], bool))
    return next((word for value in found if (word := str(value).strip())), "")


def _from_json(text: str) -> Any:
    try:
        return json_text.loads(text)
    except ValueError:
        return text
