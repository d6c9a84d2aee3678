"""The open loop, against the stand-in's stream: it sends when it must, and what waits is seen."""

import sys
from pathlib import Path

import pytest
from slowness import WAIT_S, slowness

from runners.measure.client import Job, body
from runners.measure.open_loop import open_loop
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


def test_a_dead_server_does_not_stop_the_loop(fake):
    with fake("--die-after-requests", "1", "--token-s", "0.001") as server:
        loop = open_loop(server.base_url, jobs(1, 3), [0.0, 0.5, 0.6, 0.7], (0.0, 0.8), WAIT_S, WAIT_S)
    assert [r.error is None for r in loop.results] == [True, False, False, False]
    assert {r.role for r in loop.results} == {"timed"}


def test_a_window_without_an_arrival_is_empty():
    loop = open_loop("http://127.0.0.1:9", [], [], (0.0, 0.05), 1.0, 1.0)
    assert loop.results == [] and loop.seconds >= 0.05
