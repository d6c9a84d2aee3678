"""Odd, endless and rare streams: a request is void with its reason or is read; the ledger stays whole."""

import asyncio
import json

import httpx
import matrix
import pytest
from fault_streams import STREAMS, WORDS
from slowness import WAIT_S

from runners.analyse import results
from runners.measure import client, request_limits
from runners.measure.cell_row import CellRow
from runners.measure.gates import time_passed
from runners.measure.ledger import Ledger
from runners.measure.speeds import speeds

TOKENS = 8
NAMES = {"profile": "p", "configuration": "c", "engine": "vllm", "method": "none", "workload": "chat"}


def names(faults):
    return pytest.mark.parametrize("fault", faults, ids=lambda f: f.name)


def ask(server, name, timeout_s=WAIT_S, requests=2):
    asked = client.body("m", [{"role": "user", "content": "x"}], TOKENS, 0.0, {})
    jobs = [client.Job(f"p{i}", asked) for i in range(requests)]
    return client.closed_loop(f"{server}/{name}", jobs, requests, timeout_s)


def keep(runs, key, loop):
    """Write a loop into a ledger as a cell is, and read the ledger as an analysis does."""
    reasons = [r.error for r in loop.results if r.error]
    status = "void" if reasons else "ok"
    row = CellRow(**NAMES, key=key, concurrency=2, repeat=0, status=status, reasons=reasons, **speeds(loop))
    json.dumps(row.as_json(), allow_nan=False)
    Ledger(runs / "p" / "c").append(row, loop.results)
    return results.cells(runs, "p"), results.requests(runs, "p")


def is_void_and_harms_nothing(server, runs, fault, timeout_s=WAIT_S):
    keep(runs, "before", ask(server, "good"))
    loop = ask(server, fault.name, timeout_s)
    assert all(r.error is not None and fault.said in r.error for r in loop.results), loop.results[0].error
    assert all(r.error.isprintable() and len(r.error) < 700 for r in loop.results)
    keep(runs, "fault", loop)
    cells, requests = keep(runs, "after", ask(server, "good"))
    assert cells.set_index("key").status.to_dict() == {"before": "ok", "fault": "void", "after": "ok"}
    assert requests.groupby("key").size().to_dict() == {"before": 2, "fault": 2, "after": 2}
    assert requests[requests.key != "fault"].error.isna().all()


@names(matrix.ODD)
def test_an_odd_reply_voids_its_request_and_nothing_else(server, tmp_path, fault):
    is_void_and_harms_nothing(server, tmp_path, fault)


@pytest.mark.slow
@names(matrix.ENDLESS)
def test_a_request_without_an_end_is_given_up(server, tmp_path, fault, monkeypatch):
    monkeypatch.setattr(request_limits, "SLOWEST_TOKEN_S", 0.1)
    is_void_and_harms_nothing(server, tmp_path, fault, timeout_s=1.0)


@names(matrix.BOMBS)
def test_an_answer_without_measure_is_cut(server, tmp_path, fault):
    is_void_and_harms_nothing(server, tmp_path, fault)


def test_an_answer_has_a_largest_size_by_the_tokens_that_were_asked_for(server, monkeypatch):
    monkeypatch.setattr(request_limits, "LARGEST_TOKEN", 100)
    monkeypatch.setattr(request_limits, "LARGEST_REST", 1000)
    (result,) = ask(server, "tokens-for-ever", requests=1).results
    assert result.error == f"the server's answer is longer than {1000 + 100 * TOKENS:,} bytes"


@names(matrix.LEGAL)
def test_a_legal_stream_is_read_whatever_it_looks_like(server, tmp_path, fault):
    loop = ask(server, fault.name)
    text = "".join(f"{word} " for word in WORDS[:TOKENS])
    if fault.name == "halves":
        text = "\U0001f600 " + "".join(f"{word} " for word in WORDS[: TOKENS - 2])
    for r in loop.results:
        assert r.error is None and r.text == text, r.error
        assert (r.output_tokens, r.prompt_tokens, r.finish_reason) == (TOKENS, 7, "length")
        assert sum(r.token_counts) == TOKENS and r.first_token_s == r.token_s[0] and r.last_token_s == r.token_s[-1]
    cells, _ = keep(tmp_path, "cell", loop)
    assert list(cells.status) == ["ok"]


def test_tokens_that_came_all_at_once_are_void_by_their_gate(server):
    loop = ask(server, "merged")
    assert time_passed(TOKENS, speeds(loop)["tpot_ms_p50"]) == "no time passed between the first and the last token"


class Ticks(client.Clock):
    """A clock that a look moves on by one second."""

    def __init__(self):
        self.at = 0.0

    def now(self):
        self.at += 1.0
        return self.at


@pytest.mark.parametrize("name", ["good", "crlf", "cr", "spaces", "no-space", "other-fields", "comments"])
def test_the_live_stamps_move_with_each_token(name):
    """A window opens and closes by them, before anything is parsed."""
    chunks = [part for part in STREAMS[name](4) if isinstance(part, bytes)]

    async def sent():
        for chunk in chunks:
            yield chunk

    async def asked(result):
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=sent()))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as asking:
            await client.stream(asking, {}, result, Ticks(), [])

    result = client.Result("p", 0.0, 0.0)
    asyncio.run(asked(result))
    assert result.error is None and (result.first_token_s, result.last_token_s) == (2.0, 5.0)
