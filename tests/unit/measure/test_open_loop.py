"""The open loop, against the stand-in's stream: it sends when it must, and what waits is seen."""

import sys
from pathlib import Path

import pytest
import yaml
from slowness import WAIT_S, slowness

from runners.measure import cell, cell_context, cell_key, gates
from runners.measure.client import Job, Result, body
from runners.measure.ledger import Ledger
from runners.measure.open_loop import TAIL, longest_seconds, open_loop, point, schedule, wanted
from runners.profiles import load
from runners.profiles.points import label
from runners.serve import from_profile, ports, server_process
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
FIRST = {"campaign": "c", "start": 0, "block": 0, "repeat": 0}


def test_a_schedule_has_arrivals_before_and_after_its_window():
    plan = schedule(LAB, 2.0, 20, seed=3)
    limits = LAB.workload.latency_limits
    longest_s = (limits.ttft_ms + limits.tpot_ms * (LAB.workload.output_tokens - 1)) / 1000
    assert plan.window == (longest_s, longest_s + 20) and plan.drain_s == 3 * longest_s
    assert plan.times[0] < longest_s and plan.times[-1] > plan.window[1]
    assert 20 < plan.judged < 60 and plan == schedule(LAB, 2.0, 20, seed=3)


def test_all_configurations_of_a_block_meet_the_same_arrivals():
    one = point(LAB, "chat", 2.0, **FIRST)
    assert one == point(LAB, "chat", 2.0, **FIRST)
    assert one.seed != point(LAB, "chat", 2.0, **FIRST | {"block": 1}).seed
    assert (one.rate, one.seconds, one.requests) == (2.0, 20.0, schedule(LAB, 2.0, 20.0, one.seed).judged)
    assert label("a", one) == "a · chat · 2 requests/s · repeat 0"
    keys = [cell_key.key(LAB, "vllm-base", point(LAB, "chat", rate, **FIRST)) for rate in (1.0, 2.0, 2.0)]
    assert keys[0] != keys[1] == keys[2]


def test_a_preset_asks_for_rates_or_not():
    rows = [
        {"status": "ok", "workload": "chat", "output_tokens_per_second": 64.0, "output_tokens_per_request": 64},
        {"status": "ok", "workload": "edit", "output_tokens_per_second": 32.0, "output_tokens_per_request": 64},
    ]
    found = wanted(LAB, "full", rows)
    assert found[:2] == [("chat", 0.3), ("chat", 0.5)] and found[-1] == ("edit", 0.5) and len(found) == 10
    assert wanted(LAB, "quick", rows) == wanted(LAB, None, rows) == [] == wanted(LAB, "full", [])
    assert longest_seconds(LAB) > LAB.workload.open_loop.seconds


def late(ms):
    return Result("p", 1.0, 1.0 + ms / 1000)


def test_a_client_that_is_late_voids_the_cell():
    assert gates.on_time([late(gates.LATE_MS - 1)] * 20) is None
    assert gates.on_time([late(1)] * 199 + [late(300)]) is None, "one in 200 is beyond the 99th percentile"
    assert gates.on_time([late(1)] * 9 + [late(300)]) == "the client sent requests late: 300 ms at p99, limit 50 ms"
    assert gates.on_time([]) == "no request arrived in the window"


def on_fake(tmp_path, flags, tpot_ms):
    """A profile whose target is the stand-in, with an open loop of a second."""
    content = {
        **{"name": "fake", "title": "a stand-in", "hardware": {"description": "any"}, "drafters": {}},
        "target": {
            **{"name": "toy", "precision": "none", "layers": 1, "hidden_size": 1, "vocab_size": 1},
            **{"context_length": 64, "bytes_on_disk": 1, "path": str(tmp_path)},
        },
        "engines": {"vllm": {"version": "0", "command": [sys.executable, str(FAKE)]}},
        "configurations": {"base": {"engine": "vllm", "title": "base", "max_running_requests": 4, "flags": flags}},
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 16, "concurrencies": [1], "default_preset": "full"},
            "presets": {"full": {"repeats": {1: 1}, "requests": {1: 1}}},
            "latency_limits": {"ttft_ms": 100, "tpot_ms": tpot_ms},
            "open_loop": {"rates": [8], "seconds": 1},
        },
        **{"budgets": {"vllm": {"default": WAIT_S}}, "request_timeout_seconds": WAIT_S},
        "gates": {"check_neighbours": False, "distinct_bigram_floor": 0.1},
    }
    file = tmp_path / "fake.yaml"
    file.write_text(yaml.safe_dump(content))
    return load.load(str(file))


@pytest.mark.slow
def test_a_whole_cell_of_a_rate(tmp_path, monkeypatch):
    monkeypatch.setattr(gates, "HEADROOM", 1)
    monkeypatch.setattr(gates, "LATE_MS", 1000.0)  # a test machine may be busy
    profile = on_fake(tmp_path, {"token-s": 0.02}, tpot_ms=30 * slowness())
    asked = point(profile, "chat", 8.0, **FIRST)
    with from_profile.running(profile, "base", tmp_path / "log") as server:
        context = cell_context.prepare(profile, "base", None, tmp_path, [asked])
        row, results = cell.measure(context, server, asked)
    assert (row.status, row.reasons, row.load, row.rate) == ("ok", [], "open", 8.0)
    timed = [r for r in results if r.role == "timed"]
    assert row.requests == len(timed) and row.seconds == 1.0
    assert row.output_tokens_per_second > 0 and row.tpot_ms_p50 >= 20 and row.ttft_ms_p50 > 20
    context.ledger.append(row, results)
    kept = Ledger(tmp_path / "fake" / "base").requests()
    assert set(kept.role) <= {"ramp", "timed", TAIL} and len(kept) == len(results)
    assert (kept.intended_s <= kept.sent_s).all()


@pytest.mark.slow
def test_what_is_never_answered_in_time_is_kept_and_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(gates, "HEADROOM", 1)
    monkeypatch.setattr(gates, "LATE_MS", 1000.0)
    # The first answers of a stand-in come at once and the limits are far below a token's time: most are cut.
    profile = on_fake(tmp_path, {"token-s": 0.1}, tpot_ms=2)
    asked = point(profile, "chat", 8.0, **FIRST)
    with from_profile.running(profile, "base", tmp_path / "log") as server:
        context = cell_context.prepare(profile, "base", None, tmp_path, [asked])
        row, results = cell.measure(context, server, asked)
    cut = [r for r in results if r.role == "cut"]
    assert cut and all(r.error is None and r.output_tokens < 16 for r in cut)
    assert row.requests == sum(r.role in ("timed", "cut") for r in results)
    assert not any("failed" in reason for reason in row.reasons), "too late is no failure of the measurement"
