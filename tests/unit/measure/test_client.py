"""The client, against the stand-in's stream; and the gates on what it brings."""

import sys
from pathlib import Path

import pytest
from slowness import WAIT_S, slowness

from runners.measure import cell_key, client, gates, monitors
from runners.profiles import load, points
from runners.profiles.schema import Gates
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


def test_each_place_of_the_loop_keeps_its_slot(fake):
    with fake("--token-s", "0.005") as server:
        loop = client.closed_loop(server.base_url, jobs(6, 4), 2, WAIT_S, "id_slot")
    places = [set(r.text.split()) for r in loop.results]
    assert all(len(p) == 1 for p in places) and set.union(*places) == {"slot-0", "slot-1"}
    for place in ({"slot-0"}, {"slot-1"}):  # one after the other in a slot
        own = [r for r, p in zip(loop.results, places, strict=True) if p == place]
        assert all(a.last_token_s <= b.sent_s for a, b in zip(own, own[1:], strict=False))


def test_slots_are_kept_where_an_engine_has_more_than_are_asked_for():
    lab = load.load("lab-cpu")
    asked = [command.slot_field(lab, "llamacpp-base", c) for c in (1, 4, 16)]
    assert asked == [None, "id_slot", None]
    assert command.slot_field(lab, "vllm-base", 4) is None
    point = points.Point("chat", 4, 0, 0, 8)  # what a cell was measured without is another cell
    assert cell_key.key_facts(lab, "llamacpp-base", point)["place_field"] == "id_slot"
    assert "place_field" not in cell_key.key_facts(lab, "vllm-base", point)


def test_an_answer_that_ends_early_or_not_at_all_is_an_error_of_its_request(fake):
    with fake("--die-after-requests", "2", "--token-s", "0.001") as server:
        loop = client.closed_loop(server.base_url, jobs(4), 1, WAIT_S)
    assert [r.error is None for r in loop.results] == [True, True, False, False]
    assert len(loop.results) == 4


def test_a_silent_server_times_out(fake):
    with fake("--hang") as server:
        loop = client.closed_loop(server.base_url, jobs(1), 1, 0.5)
    assert "no byte for" in loop.results[0].error


def result(text, tokens=4, **kwargs):
    return client.Result("p", 0, 0, 0.1, 0.2, 3, tokens, "usage", "length", text=text, **kwargs)


def test_gate_completed():
    assert gates.completed([result("a")], 1) is None
    assert "1 of 2 requests failed, first: broke" in gates.completed([result("a"), result("", error="broke")], 2)


def test_gate_counted():
    assert gates.counted([result("a")], 4) is None
    assert "not 5 tokens long" in gates.counted([result("a")], 5)


def test_gate_language():
    assert gates.distinct_bigrams(["a b a b a b a b a b"]) < 0.25
    assert gates.distinct_bigrams(["one two three four five six"]) == 1
    assert gates.language(0.1, 0.2) and gates.language(None, 0.2) and gates.language(0.5, 0.2) is None


@pytest.mark.parametrize(
    ("a", "b", "share"), [("abcd", "abcd", 1), ("abxx", "abcd", 0.5), ("", "", 1), ("", "a", 0), ("ab", "abcd", 1)]
)
def test_equal_prefix(a, b, share):
    assert gates.prefix_share(a, b) == share


def test_gate_same_text():
    assert gates.equal_shares([result("abcd")], {"p": ["abxx"]}) == [0.5]
    assert gates.equal_shares([result("abcd")], {"p": ["abxx", "abcd"]}) == [1], "the nearest of the base's own answers"
    assert gates.equal_shares([result("abcd")], {}) == [] == gates.equal_shares([result("a", error="x")], {"p": ["a"]})
    assert "equal prefix 0.20 over 16 answers, floor 0.50" in gates.same_text([0.2] * 16, 0.5, "base's")
    assert gates.same_text([0.2] * 3, 0.5, "") is None, "three answers with early ties prove nothing"
    assert gates.same_text([0.02] * 3, 0.5, ""), "another model shares next to nothing"
    assert gates.same_text([], 0.5, "") is None and gates.same_text([0.2], None, "") is None


@pytest.mark.parametrize(
    ("peak", "concurrency", "cap", "void", "capped"),
    [
        (4, 4, 16, False, None),
        (3, 4, 16, True, None),
        (2, 4, 2, False, 2),
        (None, 4, 16, True, None),
        (1, 4, 2, True, 2),
    ],
)
def test_gate_concurrency(peak, concurrency, cap, void, capped):
    reason, at = gates.held_concurrency(peak, concurrency, cap)
    assert bool(reason) == void and at == capped


def test_gate_client():
    assert gates.client_kept_up(0.1, 1.0) is None and "30% of a core" in gates.client_kept_up(0.3, 1.0)


def test_gate_quiet():
    quiet = monitors.NeighbourMonitor(lambda: 0.0, neighbour_cores=0.5, steal_share=0.0)
    assert "other work used 0.50 cores" in quiet.reason(Gates())
    assert quiet.reason(Gates(check_neighbours=False)) is None
    assert "steal" in monitors.NeighbourMonitor(lambda: 0.0, neighbour_cores=0.0, steal_share=0.2).reason(Gates())


@pytest.mark.parametrize("cores, word", [(1.9, "livelock"), (0.0, "stall"), (None, None)])
def test_a_mute_server_is_named_by_what_it_does(cores, word):
    mute = [client.Result("a", 0.0, 0.0, error="no byte for 300 s")]
    found = gates.spoke(mute, cores)
    assert (found or "").startswith(word or "") and (found is None) == (word is None)
    assert gates.spoke([client.Result("a", 0.0, 0.0, first_token_s=1.0)], 0.0) is None
