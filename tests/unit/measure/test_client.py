"""The client, against the stand-in's stream."""

import sys
from pathlib import Path

import pytest
from slowness import WAIT_S, slowness

from runners.measure import cell_key, client
from runners.profiles import load, points
from runners.serve import command, ports, server_process
from runners.serve.server import serve

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


@pytest.fixture
def fake(tmp_path):
    def start(*flags):
        port = ports.free_port()
        argv = [sys.executable, str(FAKE), "--port", str(port), *flags]
        launch = server_process.Launch(
            "fake", argv, {}, tmp_path / "log", port, lambda _: None, lambda _: None, grace_seconds=0.3
        )
        return serve(launch)

    return start


def jobs(n, tokens=20):
    return [
        client.Job(f"p{i}", client.body("m", [{"role": "user", "content": "x"}], tokens, 0.0, {})) for i in range(n)
    ]


def test_four_time_stamps_and_counts(fake):
    pause = 0.01 * slowness()
    with fake("--token-s", str(pause)) as server:
        loop = client.closed_loop(server.base_url, jobs(6), 2, WAIT_S)
    assert len(loop.results) == 6
    for r in loop.results:
        assert r.error is None and r.output_tokens == 20 and r.prompt_tokens == 7 and r.finish_reason == "length"
        assert r.intended_s <= r.sent_s < r.first_token_s < r.last_token_s <= loop.seconds
        # 19 pauses lie between 20 tokens; a busy machine hands over some of them together.
        assert r.last_token_s - r.first_token_s > 15 * pause, "the usage chunk is no token"
        assert len(r.text.split()) == 20
    assert max(r.sent_s for r in loop.results) > 30 * pause, "two at a time: the last pair waits for the others"
    assert loop.client_cpu_s > 0


def test_thoughts_are_tokens_from_the_first_on(fake):
    pause = 0.01 * slowness()
    with fake("--token-s", str(pause), "--thinks", "15") as server:
        loop = client.closed_loop(server.base_url, jobs(2), 1, WAIT_S)
    for r in loop.results:
        assert r.error is None and r.output_tokens == 20 and len(r.text.split()) == 20
        assert r.last_token_s - r.first_token_s > 15 * pause, "the first token is the first thought"


def test_each_worker_keeps_its_slot(fake):
    with fake("--token-s", "0.005") as server:
        loop = client.closed_loop(server.base_url, jobs(6, 4), 2, WAIT_S, "id_slot")
    slots = [set(r.text.split()) for r in loop.results]
    assert all(len(s) == 1 for s in slots) and set.union(*slots) == {"slot-0", "slot-1"}
    for slot in ({"slot-0"}, {"slot-1"}):  # one after the other in a slot
        own = [r for r, s in zip(loop.results, slots, strict=True) if s == slot]
        assert all(a.last_token_s <= b.sent_s for a, b in zip(own, own[1:], strict=False))


def test_slots_are_kept_where_an_engine_has_more_than_are_needed():
    lab = load.load("lab-cpu")
    fields = [command.slot_field(lab, "llamacpp-base", c) for c in (1, 4, 16)]
    assert fields == [None, "id_slot", None]
    assert command.slot_field(lab, "vllm-base", 4) is None
    point = points.Point("chat", 4, 0, 0, 8)  # what a cell was measured without is another cell
    assert cell_key.settings_facts(lab, "llamacpp-base", point, None)["place_field"] == "id_slot"
    assert "place_field" not in cell_key.settings_facts(lab, "vllm-base", point, None)


def test_an_answer_that_ends_early_or_not_at_all_is_an_error_of_its_request(fake):
    with fake("--die-after-requests", "2", "--token-s", "0.001") as server:
        loop = client.closed_loop(server.base_url, jobs(4), 1, WAIT_S)
    assert [r.error is None for r in loop.results] == [True, True, False, False]
    assert len(loop.results) == 4


def test_a_silent_server_times_out(fake):
    with fake("--hang") as server:
        loop = client.closed_loop(server.base_url, jobs(1), 1, 0.5)
    assert "no byte for" in loop.results[0].error


def test_a_refusal_does_not_repeat_the_key_that_was_sent():
    headers = {"Authorization": "Bearer sk-very-secret", "accept": "*/*", "user-agent": "python-httpx/0.28.1"}
    said = client.refused(401, "no such key: sk-very-secret", headers)
    assert said.startswith("HTTP 401 (it wants an API key: name the variable that holds it")
    assert said.endswith("no such key: (not shown)")
    assert client.refused(400, "python-httpx/0.28.1 is too old", headers) == "HTTP 400: python-httpx/0.28.1 is too old"
