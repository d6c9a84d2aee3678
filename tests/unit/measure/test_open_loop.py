"""The open loop, against the stand-in's stream: it sends when it must, and what waits is seen."""

import sys
from pathlib import Path

import pytest
from slowness import WAIT_S, slowness

from runners.measure import cell_key, estimate, gates
from runners.measure.client import Job, Result, body
from runners.measure.open_loop import expected_seconds, longest_seconds, open_loop, point, schedule, wanted
from runners.profiles import load
from runners.profiles.points import label
from runners.serve import ports, server_process
from runners.serve.server import serve

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


@pytest.fixture
def fake(tmp_path):
    def start(*flags):
        port = ports.free_port()
        argv = [sys.executable, str(FAKE), "--port", str(port), *flags]
        quiet = lambda _: None  # noqa: E731
        return serve(server_process.Launch("fake", argv, {}, tmp_path / "log", port, quiet, quiet, grace_seconds=0.3))

    return start


def jobs(n, tokens=20):
    return [Job(f"p{i}", body("m", [{"role": "user", "content": "x"}], tokens, 0.0, {})) for i in range(n)]


@pytest.fixture(scope="module")
def slow():
    """Seconds in which this machine does what a quiet one does in one."""
    return slowness()


@pytest.mark.slow
def test_requests_are_sent_at_their_times_whatever_the_server_does(fake, slow):
    times = [i * 0.05 * slow for i in range(12)]
    window = (0.1 * slow, 0.4 * slow)  # requests 2 to 7
    with fake("--hang") as server:
        loop = open_loop(server.base_url, jobs(5), times, window, 0.1 * slow, WAIT_S)
    assert [r.role for r in loop.results[:8]] == ["ramp"] * 2 + ["cut"] * 6, "none was answered"
    assert {r.role for r in loop.results[8:]} == {"tail"}, "the load goes on while the last ones are waited for"
    assert [r.prompt_id for r in loop.results[:7]] == ["p0", "p1", "p2", "p3", "p4", "p0", "p1"]
    assert [r.intended_s for r in loop.results] == times[: len(loop.results)]
    assert all(0 <= r.sent_s - r.intended_s < 0.05 * slow for r in loop.results), "nobody waited for an answer"
    assert all(r.first_token_s is None for r in loop.results)
    assert window[1] + 0.1 * slow <= loop.seconds < window[1] + slow


@pytest.mark.slow
def test_waiting_counts_from_the_intended_time(fake, slow):
    times = [i * 0.02 * slow for i in range(40)]
    window = (0.1 * slow, 0.4 * slow)
    with fake("--token-s", str(0.005 * slow)) as server:
        loop = open_loop(server.base_url, jobs(3, tokens=10), times, window, WAIT_S, WAIT_S)
    timed = [r for r in loop.results if r.role == "timed"]
    assert len(timed) == sum(window[0] <= at < window[1] for at in times)
    assert all(r.error is None and r.output_tokens == 10 and len(r.text.split()) == 10 for r in timed)
    assert all(r.intended_s <= r.sent_s < r.first_token_s < r.last_token_s for r in timed)
    assert "cut" not in {r.role for r in loop.results} and loop.window == window
    assert loop.seconds < times[-1] + slow, "it ends with the last answer of the window, not with the last arrival"


@pytest.mark.slow
def test_a_dead_server_does_not_stop_the_loop(fake):
    with fake("--die-after-requests", "1", "--token-s", "0.001") as server:
        loop = open_loop(server.base_url, jobs(1, 3), [0.0, 0.5, 0.6, 0.7], (0.0, 0.8), WAIT_S, WAIT_S)
    assert [r.error is None for r in loop.results] == [True, False, False, False]
    assert {r.role for r in loop.results} == {"timed"}


def test_a_window_without_an_arrival_is_empty():
    loop = open_loop("http://127.0.0.1:9", [], [], (0.0, 0.05), 1.0, 1.0)
    assert loop.results == [] and loop.seconds >= 0.05


LAB = load.load("lab-cpu")
FIRST = {"campaign": "c", "start": 0}


def test_a_schedule_has_arrivals_before_and_after_its_window():
    plan = schedule(LAB, "quick", 2.0, 20, seed=3)
    limits = LAB.workload.latency_limits
    longest_s = (limits.ttft_ms + limits.tpot_ms * (LAB.workload.output_tokens - 1)) / 1000
    assert plan.window == (longest_s, longest_s + 20) and plan.drain_s == 3 * longest_s
    assert plan.times[0] < longest_s and plan.times[-1] > plan.window[1]
    assert 20 < plan.judged < 60 and plan == schedule(LAB, "quick", 2.0, 20, seed=3)


def test_all_configurations_of_a_block_meet_the_same_arrivals():
    one = point(LAB, "quick", "chat", 2.0, **FIRST)
    assert one == point(LAB, "quick", "chat", 2.0, **FIRST)
    assert one.seed != point(LAB, "quick", "chat", 2.0, **FIRST | {"repeat": 1}).seed
    assert (one.rate, one.seconds, one.requests) == (2.0, 15.0, schedule(LAB, "quick", 2.0, 15.0, one.seed).judged)
    assert label("a", one) == "a · chat · 2 requests/s · block 0"
    other = point(LAB, "quick", "chat", 2.0, **FIRST | {"repeat": 1})
    asked = [one, other, point(LAB, "quick", "chat", 1.0, **FIRST)]
    hashes = [cell_key.settings(LAB, "vllm-base", p, "quick") for p in asked]
    assert hashes[0] == hashes[1] != hashes[2], "how many happen to arrive is no setting, the rate is one"


def test_a_preset_asks_for_rates_or_not():
    rows = [
        {"status": "ok", "workload": "chat", "output_tokens_per_second": 64.0, "output_tokens_per_request": 64},
        {"status": "ok", "workload": "edit", "output_tokens_per_second": 32.0, "output_tokens_per_request": 64},
    ]
    found = wanted(LAB, "full", rows)
    assert found[:2] == [("chat", 0.4), ("chat", 0.7)] and found[-1] == ("edit", 0.5) and len(found) == 8
    assert wanted(LAB, "quick", rows) == wanted(LAB, None, rows) == [] == wanted(LAB, "full", [])
    assert longest_seconds(LAB, "full") > LAB.workload.open_loop.seconds


def test_the_time_of_the_open_loops_is_foretold(tmp_path):
    clock = estimate.Clock(LAB, "full", tmp_path)
    names = ["llamacpp-base", "vllm-eagle3-untrained"]  # the second is left out
    windows = len(LAB.workload.prompt_sets) * len(LAB.workload.open_loop.shares)
    found = expected_seconds(LAB, "full", names, clock)
    assert windows * LAB.workload.open_loop.seconds < found < windows * longest_seconds(LAB, "full")
    assert expected_seconds(LAB, "quick", names, clock) == 0.0 == expected_seconds(LAB, "full", names[1:], clock)


def late(ms):
    return Result("p", 1.0, 1.0 + ms / 1000)


def test_a_client_that_is_late_voids_the_cell():
    assert gates.on_time([late(gates.LATE_MS - 1)] * 20) is None
    assert gates.on_time([late(1)] * 199 + [late(300)]) is None, "one in 200 is beyond the 99th percentile"
    assert gates.on_time([late(1)] * 9 + [late(300)]) == "the client sent requests late: 300 ms at p99, limit 50 ms"
    assert gates.on_time([]) == "no request arrived in the window"
