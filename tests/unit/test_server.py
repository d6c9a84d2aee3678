"""Launch and watch, against a small program that behaves like an engine."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from runners import server
from runners.errors import UserError

FAKE = Path(__file__).with_name("fake_server.py")


def phase_of(line):
    return line if line in ("loading weights", "warming up") else None


def first_error(lines):
    found = [line for line in lines if re.match(r"\w+Error: ", line)]
    return (found[0], "other") if found else None


def launch(tmp_path, *flags, **kwargs):
    port = server.free_port(None)
    argv = [sys.executable, str(FAKE), "--port", str(port), *flags]
    settings = {"stall_seconds": 2.0, "budgets": {"default": 1.0}, "grace_seconds": 1.0} | kwargs
    return server.Launch("fake", argv, {}, tmp_path / "log", port, phase_of, first_error, **settings)


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_gone(pids, seconds=8):
    until = time.monotonic() + seconds
    while time.monotonic() < until and not all(gone(p) for p in pids):
        time.sleep(0.1)
    return [p for p in pids if not gone(p)]


def test_a_server_comes_up_through_its_phases_and_goes_down_whole(tmp_path):
    with server.serve(launch(tmp_path)) as live:
        pids = live.pids()
        assert live.alive() and pids
        assert [s.name for s in live.timeline] == ["starting", "loading weights", "warming up"]
        assert all(s.end_s is not None for s in live.timeline)
    assert not wait_gone(pids)


def test_slow_but_alive_past_its_budget_is_not_stalled(tmp_path):
    said = []
    with server.serve(launch(tmp_path, "--load-s", "6", "--busy"), said.append) as live:
        assert live.ready_seconds > 5
    assert any("over its budget; moving: CPU" in text for text in said)


def test_a_true_stall_is_named_with_its_phase(tmp_path):
    with (
        pytest.raises(server.ServerStalled, match="stalled while loading weights"),
        server.serve(launch(tmp_path, "--silent-forever")),
    ):
        pass


def test_a_death_says_its_first_error(tmp_path):
    with (
        pytest.raises(server.ServerDied, match="the drafter has no lm_head") as caught,
        server.serve(launch(tmp_path, "--die", "traceback")),
    ):
        pass
    assert caught.value.phase == "loading weights" and caught.value.returncode == 1


def test_a_kill_without_a_word_is_likely_memory(tmp_path):
    with pytest.raises(server.ServerDied, match="signal 9.*memory"), server.serve(launch(tmp_path, "--die", "kill")):
        pass


def test_a_quiet_exit_says_its_code(tmp_path):
    with pytest.raises(server.ServerDied, match="exit code 3"), server.serve(launch(tmp_path, "--die", "exit")):
        pass


def test_a_missing_program_is_the_users_error(tmp_path):
    broken = launch(tmp_path)
    broken.argv = ["/nowhere/python"]
    with pytest.raises(UserError, match="/nowhere/python: No such file"), server.serve(broken):
        pass


def test_a_child_in_its_own_session_that_ignores_term_is_killed(tmp_path):
    with server.serve(launch(tmp_path, "--stubborn-child")):
        child = int(re.search(r"child (\d+)", (tmp_path / "log").read_text())[1])
        assert not gone(child)
    assert not wait_gone([child])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_the_process_that_started_it(tmp_path, number):
    """SIGKILL as when a notebook's kernel is killed, SIGINT as Ctrl-C."""
    port = server.free_port(None)
    code = f"""
import sys, time
from pathlib import Path
from runners import server
launch = server.Launch("fake", [sys.executable, {str(FAKE)!r}, "--port", "{port}", "--stubborn-child"], {{}},
                       Path({str(tmp_path / "log")!r}), {port}, lambda line: None, lambda lines: None, grace_seconds=1)
with server.serve(launch) as live:
    print(*live.pids(), flush=True)
    time.sleep(60)
"""
    env = os.environ | {"PYTHONPATH": str(Path(server.__file__).parents[1])}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    pids = [int(p) for p in child.stdout.readline().split()]
    assert len(pids) >= 2
    child.send_signal(number)
    child.wait(timeout=15)
    assert not wait_gone(pids)


def test_a_port_in_use_names_who_holds_it():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with pytest.raises(UserError, match=r"in use by .*set `port`"):
            server.check_port("127.0.0.1", s.getsockname()[1])


def test_attach_leaves_the_server_running(tmp_path):
    with server.serve(launch(tmp_path)) as live:
        with server.attach(live.base_url) as attached:
            assert attached.attached and attached.alive() and attached.pids() == []
        assert live.alive()


def test_attach_to_nothing_says_what_to_do():
    with pytest.raises(UserError, match="No server answers at .*attach.url"), server.attach("http://127.0.0.1:9"):
        pass
