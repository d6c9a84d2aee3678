"""Tokens of every kind count from the first on: an answer's, a reasoning model's thoughts, the call of a tool."""

import asyncio
import json

import httpx
import pytest

from runners.measure import client, token_times
from runners.measure.client import Result


def thought(text):
    return {"reasoning": text}


def older_thought(text):
    return {"reasoning_content": text}


def both_thoughts(text):
    return {"reasoning": text, "reasoning_content": text}


def argument(text):
    return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}


def call(text):
    return {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": text, "arguments": ""}}]}


def old_call(text):
    return {"function_call": {"arguments": text}}


def parts(text):
    return {"content": [{"type": "text", "text": text}]}


def thinking_part(text):
    return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}


KINDS = (thought, older_thought, both_thoughts, argument, call, old_call, parts, thinking_part)


def event(delta, end="\n\n", **more):
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, **more}]}).encode() + end.encode()


def closing(tokens, end="\n\n"):
    usage = {"prompt_tokens": 5, "completion_tokens": tokens}
    last = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + end.encode()
    return [event({}, end, finish_reason="stop"), last, b"data: [DONE]" + end.encode()]


@pytest.mark.parametrize("kind", KINDS)
def test_times_and_counts_begin_with_the_first_token_of_any_kind(kind):
    # 24 tokens a thought or a call, then 8 of the answer; the first after 37 ms, then one every 31 ms.
    deltas = [kind("ab ")] * 24 + [{"content": "cd "}] * 8
    stamps = [0.037 + 0.031 * i for i in range(len(deltas))]
    stamped = [(0.001, event({"role": "assistant", "content": ""}))]
    stamped += [(at, event(delta)) for at, delta in zip(stamps, deltas, strict=True)]
    stamped += [(1.5, chunk) for chunk in closing(32)]
    answer = token_times.read(stamped)
    assert answer.token_s == pytest.approx(stamps) and answer.token_counts == [1] * 32 and answer.done
    assert 1000 * answer.token_s[0] == pytest.approx(37)
    assert 1000 * (answer.token_s[-1] - answer.token_s[0]) / 31 == pytest.approx(31)
    assert answer.text == "ab " * 24 + "cd " * 8 and answer.output_tokens == 32


def test_a_running_count_holds_for_thoughts_too():
    chunks = [(thought("ab"), 3), (thought("c"), 4), ({"content": "defg"}, 8)]
    stamped = [
        (at, b"data: " + json.dumps({"choices": [{"delta": d}], "usage": {"completion_tokens": n}}).encode() + b"\n\n")
        for at, (d, n) in enumerate(chunks)
    ]
    assert token_times.read(stamped).token_counts == [3, 1, 4]


def test_deltas_without_a_text_are_no_tokens():
    for delta in ({"role": "assistant"}, {"content": None, "reasoning": None}, {"tool_calls": None}, thought(""), {}):
        assert token_times.text_of({"choices": [{"delta": delta}]}) == ""
    assert token_times.text_of({"choices": []}) == "" == token_times.text_of({"choices": [{"delta": None}]})


def test_a_call_is_read_with_its_name_and_arguments():
    calls = {"tool_calls": [{"function": {"name": "add", "arguments": '{"a":1}'}}, {"function": {"name": "stop"}}]}
    assert token_times.text_of({"choices": [{"delta": calls}]}) == 'add{"a":1}stop'


class Ticks(client.Clock):
    """A clock that a look moves on by one second."""

    def __init__(self):
        self.at = 0.0

    def now(self):
        self.at += 1.0
        return self.at


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_live_stamps_are_those_of_the_tokens(kind, end):
    """The window opens and closes by them (window.py), before anything is parsed."""
    chunks = [event({"role": "assistant", "content": ""}, end)]
    chunks += [event(kind("ab"), end), event(kind("cd"), end), *closing(2, end)]

    async def sent():
        for chunk in chunks:
            yield chunk

    async def ask(result, stamped):
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=sent()))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as asking:
            await client.stream(asking, {}, result, Ticks(), stamped)

    result, stamped = Result("p", 0.0, 0.0), []
    asyncio.run(ask(result, stamped))
    assert result.error is None and len(stamped) == len(chunks)
    assert (result.first_token_s, result.last_token_s) == (2.0, 3.0)
    (whole,) = client.parsed([(result, stamped)])
    assert (whole.first_token_s, whole.last_token_s, whole.output_tokens) == (2.0, 3.0, 2) and whole.error is None
