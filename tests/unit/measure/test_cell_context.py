"""What a configuration's cells share: requests in the engine's form, and counters once the server is at rest."""

from types import SimpleNamespace

import httpx
import pytest

from runners.measure import cell_context
from runners.measure.cell_context import CellContext
from runners.measure.ledger import Ledger
from runners.profiles import load
from runners.profiles.prompts import Prompt
from runners.readers.records import Counters

LAB = load.load("lab-cpu")


def context(tmp_path, name="vllm-base", profile=LAB, read_counters=None, **fields):
    reader = SimpleNamespace(read_counters=read_counters)
    return CellContext(profile, name, None, Ledger(tmp_path), {}, reader, request_fields=fields)


def answering(shared, handler):
    """The context with a server in place of the network."""
    shared._client = httpx.Client(transport=httpx.MockTransport(handler))
    return shared


def test_a_request_is_in_the_engines_form(tmp_path):
    prompt = Prompt("p", "t", ({"role": "user", "content": "x"},))
    (job,) = context(tmp_path, extra_field=False).jobs([prompt], 24)
    assert job.prompt_id == "p" and job.body["model"] == LAB.target.name
    assert job.body["max_tokens"] == 24 and job.body["ignore_eos"] and job.body["extra_field"] is False


def test_answers_may_end_by_themselves_where_the_profile_says_so(tmp_path):
    natural = LAB.model_copy(update={"workload": LAB.workload.model_copy(update={"ends": "natural"})})
    (job,) = context(tmp_path, profile=natural).jobs([Prompt("p", "t", ())], 24)
    assert "ignore_eos" not in job.body and job.body["max_tokens"] == 24


def test_an_attached_server_may_name_the_target_otherwise(tmp_path):
    content = LAB.model_dump()
    content["configurations"]["vllm-base"]["attach"] = {"url": "http://127.0.0.1:8000", "model": "served-name"}
    attached = context(tmp_path, profile=type(LAB).model_validate(content))
    (job,) = attached.jobs([Prompt("p", "t", ())], 24)
    assert job.body["model"] == "served-name"


def test_facts_of_a_configuration(tmp_path):
    base, ngram, eagle = (context(tmp_path, n) for n in ("vllm-base", "vllm-ngram", "vllm-eagle3-aligned"))
    assert [c.drafts for c in (base, ngram, eagle)] == [False, True, True]
    assert [c.drafts_every_step for c in (base, ngram, eagle)] == [False, False, True]
    assert base.counts_in_metrics


def test_counters_are_none_where_the_server_does_not_answer(tmp_path):
    def broken(_):
        raise httpx.ConnectError("refused")

    assert answering(context(tmp_path), broken).counters("http://server") is None
    assert answering(context(tmp_path), lambda _: httpx.Response(503)).counters("http://server") is None


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr(cell_context.time, "sleep", lambda _: None)


def test_counters_are_read_again_until_nothing_runs(tmp_path, no_pauses):
    readings = iter([Counters(running=2), Counters(running=0, queued=1), Counters(running=0, queued=0, steps=7)])
    shared = context(tmp_path, read_counters=lambda _: next(readings))
    found = answering(shared, lambda _: httpx.Response(200)).settled_counters("http://server")
    assert found.steps == 7


def test_a_server_that_never_rests_is_not_waited_for_without_end(tmp_path, no_pauses, monkeypatch):
    monkeypatch.setattr(cell_context, "SETTLE_SECONDS", 0.05)
    shared = context(tmp_path, read_counters=lambda _: Counters(running=3))
    found = answering(shared, lambda _: httpx.Response(200)).settled_counters("http://server")
    assert found.running == 3
