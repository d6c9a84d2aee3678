"""When each token of a streamed answer arrived, and how many came at once: read from the kept bytes after the clock.

A chunk of a stream may hold several tokens: a verification step that accepts three drafts hands over four. An engine
that sends its running count with each chunk (`continuous_usage_stats`, vLLM's serving/chat_completion) is taken at its
word. Elsewhere a chunk is one token where chunks and tokens are equally many, and else the answer's tokens are spread
over its chunks by the length of their text, which is modelled and not counted. An answer that was cut has no total: it
is given the tokens a character of the whole answers beside it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

CHUNK_IS_TOKEN = 1.02  # tokens a chunk up to which a chunk is taken for a token
Stamped = tuple[float, bytes]  # seconds from the start of the cell, raw bytes


@dataclass
class Answer:
    """What a stream said, in the order in which it came."""

    text: str = ""
    token_s: list[float] = field(default_factory=list)  # arrival of each chunk that holds text
    token_counts: list[int] = field(default_factory=list)  # tokens in each of them
    prompt_tokens: int | None = None
    output_tokens: int | None = None  # the engine's own count; None when it sent none
    finish_reason: str | None = None
    error: str | None = None
    done: bool = False  # the stream was closed as the protocol says
    chunk_texts: list[str] = field(default_factory=list)  # the text of each chunk


def read(stamped: Sequence[Stamped]) -> Answer:
    """The answer that a stream of server-sent events holds, ended or cut."""
    answer, counted, running = Answer(), [], 0
    texts: list[str] = []
    for now, event in _events(stamped, answer):
        if event.get("error"):
            detail = event["error"]
            answer.error = str(detail.get("message", detail) if isinstance(detail, dict) else detail)[:300]
        usage = event.get("usage") or {}
        total = usage.get("completion_tokens")
        if text := text_of(event):
            texts.append(text)
            answer.token_s.append(now)
            counted.append(None if total is None else max(int(total) - running, 0))
        if total is not None:
            running = max(running, int(total))
            answer.output_tokens, answer.prompt_tokens = running, usage.get("prompt_tokens")
        choices = event.get("choices") or [{}]
        answer.finish_reason = choices[0].get("finish_reason") or answer.finish_reason
    answer.text, answer.chunk_texts = "".join(texts), texts
    answer.token_counts = _counts(counted, texts, answer.output_tokens)
    return answer


def fill_in_cut(answers: Sequence[Answer]) -> None:
    """Tokens of the answers without a count of the engine's, by those of the others, where a chunk holds several."""
    whole = [a for a in answers if a.output_tokens is not None and a.text]
    tokens, chunks = sum(a.output_tokens or 0 for a in whole), sum(len(a.token_s) for a in whole)
    if not chunks or tokens <= CHUNK_IS_TOKEN * chunks:
        return
    per_character = tokens / sum(len(a.text) for a in whole)
    for a in answers:
        if a.output_tokens is None and a.chunk_texts:
            a.token_counts = _spread(a.chunk_texts, round(per_character * len(a.text)))


def text_of(event: dict[str, Any]) -> str:
    """The text of one event: an answer's, a reasoning model's thoughts, and a call of a tool (its name and arguments).
    All of them are tokens like others.
    """
    choices = event.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    # vLLM 0.32 sends `reasoning`, older releases and others `reasoning_content`, and some both with the same text.
    text = _text(delta.get("reasoning") or delta.get("reasoning_content")) + _text(delta.get("content"))
    if delta.get("tool_calls") or delta.get("function_call"):
        calls = [call.get("function") for call in delta.get("tool_calls") or []] + [delta.get("function_call")]
        text += "".join(_text(call.get("name")) + _text(call.get("arguments")) for call in calls if call)
    return text


def _text(part: Any) -> str:
    """A piece of a delta as text; some servers send a list of parts."""
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return "".join(_text(piece) for piece in part)
    return _text(part.get("text") or part.get("thinking")) if isinstance(part, dict) else ""


def lines(raw: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of whole lines of an event stream; a line that is not one is passed over."""
    for line in raw.split(b"\n"):
        line = line.strip()
        if line.startswith(b"data:") and not line.endswith(b"[DONE]"):
            try:
                event = json.loads(line[5:])
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def _events(stamped: Sequence[Stamped], answer: Answer) -> Iterator[tuple[float, dict[str, Any]]]:
    """Each event with the arrival of the bytes that completed it; notes the end of the stream in `answer`."""
    rest = b""
    for now, chunk in stamped:
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline:
            answer.done = answer.done or whole.rstrip().endswith(b"[DONE]")
            for event in lines(whole):
                yield now, event
    if rest:
        answer.done = answer.done or rest.rstrip().endswith(b"[DONE]")
        for event in lines(rest):
            yield stamped[-1][0], event


def _counts(counted: list[int | None], texts: list[str], total: int | None) -> list[int]:
    """Tokens of each chunk: by the engine's running count, else one each, else by the length of the text."""
    if not counted:
        return []
    if None not in counted and sum(c or 0 for c in counted) > 0:
        return _with_the_rest([c or 0 for c in counted], total)
    # A token without text (an end mark, half of a character) has no chunk of its own: a difference of one or two.
    if total is None or abs(total - len(texts)) <= 2:
        return _with_the_rest([1] * len(texts), total)
    return _spread(texts, total)


def _spread(texts: list[str], total: int) -> list[int]:
    """`total` tokens over chunks by the length of their text; rounded on the running sum, so that they add up."""
    length, seen, given, counts = sum(map(len, texts)), 0, 0, []
    for text in texts:
        seen += len(text)
        upto = round(total * seen / length)
        counts.append(upto - given)
        given = upto
    return counts


def _with_the_rest(counts: list[int], total: int | None) -> list[int]:
    """The last chunk holds what the engine counted beyond the chunks (never less than none)."""
    if total is not None:
        counts[-1] = max(counts[-1] + total - sum(counts), 0)
    return counts
