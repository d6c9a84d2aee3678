"""What the stand-in faulty.py answers: streams, heads of answers and /metrics texts that are odd, endless, or legal and
rare. Each stream is made for a number of tokens, and gives bytes to send or seconds to wait.
"""

import gzip
import json
from collections.abc import Callable, Iterator

WORDS = """amber birch cedar delta eagle fjord grove heron inlet jetty knoll larch maple north otter plain quail ridge
slope trail upper vista water yield zebra acorn brook cliff drift earth flint gorge haven islet""".split()
STEP_S = 0.02  # between two tokens
PING_S = 0.1
Part = bytes | float  # bytes to send, or seconds to wait
Stream = Callable[[int], Iterator[Part]]  # by the number of tokens that were asked for
DONE = b"data: [DONE]\n\n"


def event(content: object) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


def delta(**parts: object) -> dict:
    return {"choices": [{"index": 0, "delta": parts}]}


def tokens(n: int) -> Iterator[Part]:
    for i in range(n):
        yield STEP_S
        yield event(delta(content=WORDS[i % len(WORDS)] + " "))


def end(n: int) -> Iterator[Part]:
    yield event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    yield event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": n}})
    yield DONE


def good(n: int) -> Iterator[Part]:
    yield event(delta(role="assistant", content=""))
    yield from tokens(n)
    yield from end(n)


def odd(frame: object) -> Stream:
    """A good answer with one odd event (an object, or the bytes of a frame) behind its first token."""

    def stream(n: int) -> Iterator[Part]:
        yield from tokens(1)
        yield frame if isinstance(frame, bytes) else event(frame)
        yield from tokens(n - 1)
        yield from end(n)

    return stream


def counted(usage: object) -> Stream:
    """A good answer with another `usage` at its end (an object, or the text of one)."""

    def stream(n: int) -> Iterator[Part]:
        yield from tokens(n)
        text = usage if isinstance(usage, str) else json.dumps(usage)
        yield f'data: {{"choices": [], "usage": {text}}}\n\n'.encode()
        yield DONE

    return stream


def written(change: Callable[[bytes], bytes]) -> Stream:
    """A good answer, its bytes written in another way."""

    def stream(n: int) -> Iterator[Part]:
        for part in good(n):
            yield change(part) if isinstance(part, bytes) else part

    return stream


def pings(after: int) -> Stream:
    """Comments for ever, behind so many tokens."""

    def stream(n: int) -> Iterator[Part]:
        yield from tokens(after)
        while True:
            yield b": ping\n\n"
            yield PING_S

    return stream


def endless(part: bytes, pause: float = 0.0) -> Stream:
    def stream(n: int) -> Iterator[Part]:
        while True:
            yield part
            yield pause

    return stream


def merged(n: int) -> Iterator[Part]:
    yield b"".join(part for part in good(n) if isinstance(part, bytes))


def byte_by_byte(n: int) -> Iterator[Part]:
    for part in good(n):
        if isinstance(part, bytes):
            yield from (part[i : i + 1] for i in range(len(part)))


def stays_open(n: int) -> Iterator[Part]:
    yield from good(n)
    yield 600.0


def cut(n: int) -> Iterator[Part]:
    yield from tokens(2)
    yield event(delta(content="last"))[:-9]


def several_lines(n: int) -> Iterator[Part]:
    for part in good(n):
        if isinstance(part, bytes) and part.startswith(b"data: {"):
            lines = json.dumps(json.loads(part[6:]), indent=1).split("\n")
            yield "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
        else:
            yield part


def halves(n: int) -> Iterator[Part]:
    """One character in two events, each with half of its surrogate pair, as servers that count in UTF-16 send it."""
    yield b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n'
    yield b'data: {"choices": [{"delta": {"content": "\\ude00 "}}]}\n\n'
    yield from tokens(n - 2)
    yield from end(n)


def with_mark(part: bytes) -> bytes:
    return b"\xef\xbb\xbf" + part if b"role" in part else part  # the first event alone


LONE = b'data: {"choices": [{"delta": {"content": "a\\ud83d b"}}]}\n\n'
STREAMS: dict[str, Stream] = {
    "good": good,
    "choices-of-texts": odd({"choices": ["x"]}),
    "choices-an-object": odd({"choices": {"a": 1}}),
    "choices-a-text": odd({"choices": "abc"}),
    "delta-a-text": odd({"choices": [{"delta": "text"}]}),
    "delta-a-list": odd({"choices": [{"delta": ["text"]}]}),
    "content-a-number": odd(delta(content=7)),
    "content-of-numbers": odd(delta(content=[1, 2])),
    "content-true": odd(delta(content=True)),
    "thought-a-number": odd(delta(reasoning=7)),
    "calls-of-texts": odd(delta(tool_calls=["x"])),
    "calls-an-object": odd(delta(tool_calls={"a": 1})),
    "function-a-text": odd(delta(tool_calls=[{"function": "x"}])),
    "finish-a-list": odd({"choices": [{"delta": {}, "finish_reason": ["stop"]}]}),
    "usage-a-list": counted([7, 8]),
    "usage-a-text": counted("7"),
    "usage-of-texts": counted({"prompt_tokens": "7", "completion_tokens": "8"}),
    "usage-fraction": counted({"prompt_tokens": 7, "completion_tokens": 16.5}),
    "usage-huge": counted({"prompt_tokens": 7, "completion_tokens": 10**30}),
    "usage-nan": counted('{"prompt_tokens": 7, "completion_tokens": NaN}'),
    "usage-infinite": counted('{"prompt_tokens": 7, "completion_tokens": Infinity}'),
    "usage-true": counted({"prompt_tokens": 7, "completion_tokens": True}),
    "usage-negative": counted({"prompt_tokens": 7, "completion_tokens": -32}),
    "prompt-negative": counted({"prompt_tokens": -7, "completion_tokens": 8}),
    "usage-of-digits": counted('{"completion_tokens": ' + "1" * 5000 + "}"),
    "brackets": odd(b"data: " + b"[" * 100_000 + b"\n\n"),
    "deep": odd(b'data: {"choices": [], "x": ' + b"[" * 500 + b"]" * 500 + b"}\n\n"),
    "no-json": odd(b"data: {oops\n\n"),
    "a-list": odd([1]),
    "lone-surrogate": odd(LONE),
    "error-event": odd({"error": {"message": "out of\nmemory \x1b[31m"}}),
    "error-of-lists": odd({"error": [["x"]]}),
    "empty": lambda n: iter(()),
    "page": lambda n: iter((b"<html><body>Welcome</body></html>",)),
    "cut": cut,
    "pings": pings(0),
    "pings-after-tokens": pings(2),
    "silent": lambda n: iter((600.0,)),
    "silent-after-tokens": lambda n: (part for part in [*tokens(2), 600.0]),
    "tokens-for-ever": endless(event(delta(content="more ")), 0.001),
    "one-long-line": endless(b"data: " + b"x" * 65_536),
    "stays-open": stays_open,
    "merged": merged,
    "crlf": written(lambda part: part.replace(b"\n", b"\r\n")),
    "cr": written(lambda part: part.replace(b"\n", b"\r")),
    "spaces": written(lambda part: part.replace(b'": ', b'"  :  ')),
    "no-space": written(lambda part: part.replace(b"data: ", b"data:")),
    "other-fields": written(lambda part: b"event: message\nid: 7\nretry: 10\n: note\n" + part),
    "byte-order-mark": written(with_mark),
    "comments": written(lambda part: b": ping\n\n" + part + b": ping\n\n"),
    "several-lines": several_lines,
    "byte-by-byte": byte_by_byte,
    "halves": halves,
}
# Heads of answers: (status, headers); their bodies are those of the streams of the same name, or good.
HEADS: dict[str, tuple[int, dict[str, str]]] = {
    "error-500": (500, {}),
    "error-500-endless": (500, {}),
    "moved": (302, {"Location": "http://127.0.0.1:1/"}),
    "compressed": (200, {"Content-Encoding": "gzip"}),
    "compresses-if-offered": (200, {"Content-Encoding": "gzip"}),
    "torn-chunks": (200, {"Transfer-Encoding": "chunked"}),
    "short-body": (200, {"Content-Length": "1000000"}),
}
STREAMS |= {
    "error-500": lambda n: iter((b"</script><img src=x>\x1b[31m went wrong",)),
    "error-500-endless": endless(b"no " * 1000),
    "moved": lambda n: iter((b"elsewhere",)),
    "compressed": written(gzip.compress),
    "compresses-if-offered": written(gzip.compress),
    "torn-chunks": lambda n: iter((b"zz\r\nno chunk",)),
    "short-body": good,
}


def gauge(more: str) -> str:
    return f"vllm:num_requests_running 0.0\nvllm:num_requests_waiting 0.0\n{more}\n"


ACCEPTED = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
METRICS: dict[str, str] = {
    "position-raised": gauge(f'{ACCEPTED}{{position="²"}} 1'),
    "position-bomb": gauge(f'{ACCEPTED}{{position="900000000"}} 1'),
    "position-of-digits": gauge(f'{ACCEPTED}{{position="{"1" * 5000}"}} 1'),
    "position-a-word": gauge(f'{ACCEPTED}{{position="first"}} 1'),
    "counter-infinite": gauge("vllm:generation_tokens_total +Inf"),
    "counter-nan": gauge("vllm:generation_tokens_total NaN"),
    "counter-negative": gauge("vllm:generation_tokens_total -5"),
    "counter-huge": gauge("vllm:generation_tokens_total 1e300"),
    "metrics-a-page": "<html>metrics</html>",
    "metrics-json": '{"running": 1}',
    "metrics-brackets": "[" * 100_000,
    "metrics-empty": "",
    "metrics-words": "vllm:num_requests_running many\n",
}
