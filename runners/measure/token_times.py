"""When each token of a streamed answer arrived, and how many came at once: read from the kept bytes after the clock.

A chunk of a stream may hold several tokens: a verification step that accepts three drafts hands over four. An engine
that sends its running count with each chunk (`continuous_usage_stats`, vLLM's serving/chat_completion) is taken at its
word. Elsewhere a chunk is one token where chunks and tokens are equally many, and else the answer's tokens are spread
over its chunks by the length of their text, which is modelled and not counted. An answer that was cut has no total: it
is given the tokens a character of the whole answers beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from runners.measure import chat_event
from runners.measure.chat_event import MOST_TOKENS, Event, OddReply, text_of
from runners.measure.event_stream import EventStream

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
    """The answer that a stream of server-sent events holds, ended or cut. An odd event ends it, with an error."""
    answer, counted, stream = Answer(), list[int | None](), EventStream()
    try:
        for now, event in _events(stamped, stream):
            _take(event, now, answer, counted)
    except OddReply as odd:
        answer.error = str(odd)
    answer.error, answer.done = answer.error or stream.fault, stream.done
    answer.token_counts = _counts(counted, answer.chunk_texts, answer.output_tokens)
    answer.text, halves = _whole_characters("".join(answer.chunk_texts))
    if halves and answer.done:
        answer.error = answer.error or "the server's answer is odd: its text holds half of a character (a surrogate)"
    return answer


def _take(event: Event, now: float, answer: Answer, counted: list[int | None]) -> None:
    """Add one event to an answer; `counted` gets the tokens of its chunk, None where the engine does not say."""
    answer.error = chat_event.error_of(event) or answer.error
    total, prompt = chat_event.counts_of(event)
    running = answer.output_tokens or 0
    if text := text_of(event):
        answer.chunk_texts.append(text)
        answer.token_s.append(now)
        counted.append(None if total is None else max(total - running, 0))
    if total is not None:
        answer.output_tokens, answer.prompt_tokens = max(running, total), prompt
    answer.finish_reason = chat_event.finish_reason_of(event) or answer.finish_reason


def _events(stamped: Sequence[Stamped], stream: EventStream) -> Iterator[tuple[float, Event]]:
    """Each event with the arrival of the bytes that completed it."""
    for now, chunk in stamped:
        for event in stream.feed(chunk):
            yield now, event
    for event in stream.close():
        yield stamped[-1][0], event


def _whole_characters(text: str) -> tuple[str, int]:
    """(the text, how many halves of a character were alone in it): halves that came in two chunks are joined, one alone
    becomes U+FFFD, for no file can hold it.
    """
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole, whole.count("\ufffd") - text.count("\ufffd")


def fill_in_cut(answers: Sequence[Answer]) -> None:
    """Tokens of the answers without a count of the engine's, by those of the others, where a chunk holds several."""
    whole = [a for a in answers if a.output_tokens is not None and a.text]
    tokens, chunks = sum(a.output_tokens or 0 for a in whole), sum(len(a.token_s) for a in whole)
    if not chunks or tokens <= CHUNK_IS_TOKEN * chunks:
        return
    per_character = tokens / sum(len(a.text) for a in whole)
    for a in answers:
        if a.output_tokens is None and a.chunk_texts:
            a.token_counts = _spread(a.chunk_texts, min(round(per_character * len(a.text)), MOST_TOKENS))


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
