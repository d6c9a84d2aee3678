"""What one event of a streamed chat answer holds, as OpenAI's API has it: text, counts, how the answer ended.

Servers leave fields out, send null, or send parts in lists; all of that is read. Anything else is an `OddReply`: the
request is void then, with the reason, and nothing is guessed.
"""

from typing import Any

from runners.core.one_line import one_line

MOST_TOKENS = 2**31 - 1  # what a count of tokens can be; the ledger's columns hold no more
Event = dict[str, Any]


class OddReply(Exception):
    """An event that is none of a chat answer, in words."""


def text_of(event: Event) -> str:
    """The text of one event: an answer's, a reasoning model's thoughts, and a call of a tool (its name and arguments).
    All of them are tokens like others. Raises OddReply.
    """
    delta = _mapping(_choice(event).get("delta"), "choices[0].delta")
    # vLLM 0.32 sends `reasoning`, older releases and others `reasoning_content`, and some both with the same text.
    text = _text(delta.get("reasoning") or delta.get("reasoning_content")) + _text(delta.get("content"))
    if delta.get("tool_calls") or delta.get("function_call"):
        calls = [_mapping(call, "a tool call") for call in _list(delta.get("tool_calls"), "tool_calls")]
        functions = [call.get("function") for call in calls] + [delta.get("function_call")]
        for function in (_mapping(f, "a called function") for f in functions):
            text += _text(function.get("name")) + _text(function.get("arguments"))
    return text


def counts_of(event: Event) -> tuple[int | None, int | None]:
    """(output tokens, prompt tokens) so far by the engine's own count; None where the event has none. Raises OddReply
    for what no count can be.
    """
    usage = _mapping(event.get("usage"), "usage")
    return _count(usage, "completion_tokens"), _count(usage, "prompt_tokens")


def finish_reason_of(event: Event) -> str | None:
    """Why the answer ended; None while it goes on. Raises OddReply."""
    reason = _choice(event).get("finish_reason")
    if reason is not None and not isinstance(reason, str):
        raise _odd("choices[0].finish_reason", "a text", reason)
    return one_line(reason) if reason else None


def error_of(event: Event) -> str | None:
    """The error that a server sends in the place of an answer, as one line; None without one."""
    detail = event.get("error")
    if not detail:
        return None
    return one_line(str(detail.get("message", detail) if isinstance(detail, dict) else detail))


def _choice(event: Event) -> Event:
    """The first choice: one answer is asked for. Empty where the event has none."""
    choices = _list(event.get("choices"), "choices")
    return _mapping(choices[0], "choices[0]") if choices else {}


def _text(part: Any) -> str:
    """A piece of a delta as text; some servers send a list of parts."""
    if part is None or isinstance(part, str):
        return part or ""
    if isinstance(part, list):
        return "".join(_text(piece) for piece in part)
    if isinstance(part, dict):
        return _text(part.get("text") or part.get("thinking"))
    raise _odd("a piece of the answer", "a text", part)


def _count(usage: Event, name: str) -> int | None:
    value = usage.get(name)
    if value is None:
        return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    whole = whole or (isinstance(value, float) and value.is_integer())  # 16.0: some servers know one kind of number
    if not whole or not 0 <= value <= MOST_TOKENS:
        raise _odd(f"usage.{name}", f"a whole number from 0 to {MOST_TOKENS}", value)
    return int(value)


def _mapping(value: Any, name: str) -> Event:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _odd(name, "an object", value)
    return value


def _list(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _odd(name, "a list", value)
    return value


def _odd(name: str, wanted: str, value: Any) -> OddReply:
    return OddReply(f"the server's answer is odd: {name} must be {wanted}, and it is {one_line(repr(value), 60)}")
