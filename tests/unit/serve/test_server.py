"""Launch and watch, against a small program that behaves like an engine."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest
from slowness import slowness, wait_for

from runners.core.errors import UserError
from runners.core.paths import ROOT
from runners.serve import ports, server_process, wait_until_ready
from runners.serve.attached_server import attach
from runners.serve.liveness import Snapshot
from runners.serve.log_tail import LogTail
from runners.serve.server import serve
from runners.serve.wait_until_ready import ServerDied, ServerStalled

pytestmark = pytest.mark.slow  # starts processes and measures time

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


def phase_of(line):
    return line if line in ("loading weights", "warming up") else None


def first_error(lines):
    found = [line for line in lines if re.match(r"\w+Error: ", line)]
    return (found[0], "other") if found else None


def impatient():
    return {"stall_seconds": 1.5 * slowness(), "budgets": {"default": 0.5 * slowness()}}


@pytest.fixture(autouse=True)
def looks_four_times_a_second(monkeypatch):
    monkeypatch.setattr(wait_until_ready, "LOOK_S", 0.25)


def child_of(log):
    return int(re.search(r"child (\d+)", log.read_text())[1])


def launch(tmp_path, *flags, **kwargs):
    port = ports.free_port()
    argv = [sys.executable, str(FAKE), "--port", str(port), *flags]
    # Patient unless a test is about patience: on a loaded machine a program may take seconds to begin.
    settings = {"stall_seconds": 60.0, "budgets": {"default": 60.0}, "grace_seconds": 0.3} | kwargs
    return server_process.Launch("fake", argv, {}, tmp_path / "log", port, phase_of, first_error, **settings)


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def still_there(pids):
    """Those of these processes that have not ended after a generous wait."""
    wait_for(lambda: all(gone(p) for p in pids))
    return [p for p in pids if not gone(p)]


def test_a_server_comes_up_through_its_phases_and_goes_down_whole(tmp_path):
    with serve(launch(tmp_path)) as server:
        pids = server.pids()
        assert server.alive() and pids
        assert [s.name for s in server.timeline] == ["starting", "loading weights", "warming up"]
        assert all(s.end_s is not None for s in server.timeline)
    assert not still_there(pids)


def test_slow_but_alive_past_its_budget_is_not_stalled(tmp_path):
    reports, seconds = [], 2.0 * slowness()
    with serve(launch(tmp_path, "--load-s", str(seconds), "--busy", **impatient()), reports.append) as server:
        assert server.ready_seconds > seconds
    assert any("over its budget; moving: CPU" in text for text in reports)


def test_a_true_stall_is_named_with_its_phase(tmp_path):
    with (
        pytest.raises(ServerStalled, match="stalled while loading weights") as caught,
        serve(launch(tmp_path, "--silent-forever", **impatient())),
    ):
        pass
    assert caught.value.phase == "loading weights" and caught.value.snapshot.cpu_seconds < 1


def test_the_cap_on_a_start_does_not_call_a_living_one_stalled(tmp_path):
    with (
        pytest.raises(ServerStalled, match=r"not ready after \d+ s, the most .* moving: CPU") as caught,
        serve(launch(tmp_path, "--load-s", "30", "--busy", total_seconds=2.0 * slowness())),
    ):
        pass
    assert "stalled" not in str(caught.value)


def test_an_earlier_start_in_the_same_log_is_not_read(tmp_path):
    (tmp_path / "log").write_text("loading weights\nwarming up\nOldError: of yesterday\n")
    with (
        pytest.raises(ServerDied, match="signal 9") as caught,
        serve(launch(tmp_path, "--die", "kill")),
    ):
        pass
    assert caught.value.phase == "loading weights"


def test_a_death_says_its_first_error(tmp_path):
    with (
        pytest.raises(ServerDied, match="the drafter has no lm_head") as caught,
        serve(launch(tmp_path, "--die", "traceback")),
    ):
        pass
    assert caught.value.phase == "loading weights" and caught.value.returncode == 1


def test_a_kill_without_a_word_is_likely_memory(tmp_path):
    with pytest.raises(ServerDied, match="signal 9.*memory"), serve(launch(tmp_path, "--die", "kill")):
        pass


def test_a_quiet_exit_says_its_code(tmp_path):
    with pytest.raises(ServerDied, match="exit code 3"), serve(launch(tmp_path, "--die", "exit")):
        pass


def test_a_missing_program_is_the_users_error(tmp_path):
    broken = launch(tmp_path)
    broken.argv = ["/nowhere/python"]
    with pytest.raises(UserError, match="/nowhere/python: No such file"), serve(broken):
        pass


def test_a_child_in_its_own_session_that_ignores_term_is_killed(tmp_path):
    with serve(launch(tmp_path, "--stubborn-child")):
        child = child_of(tmp_path / "log")
        assert not gone(child)
    assert not still_there([child])


def test_a_death_is_seen_before_what_it_left_is_brought_down(tmp_path):
    with serve(launch(tmp_path, "--stubborn-child", grace_seconds=60.0)) as server:
        child = child_of(tmp_path / "log")
        os.kill(os.getpgid(server.pids()[0]), signal.SIGKILL)
        assert wait_for(lambda: not server.alive()) and not gone(child)
        assert server.cause() == ("ended by signal 9 without an error: likely the host's memory ran out", "killed")
        os.kill(child, signal.SIGKILL)  # no need to wait out its grace
    assert gone(child)
    assert not server.alive()  # and asking again afterwards is no error


def test_whoever_feels_the_end_first_is_not_told_that_it_lives(tmp_path):
    with serve(launch(tmp_path, "--die-after-requests", "0")) as server:
        with pytest.raises(httpx.TransportError):
            httpx.post(server.base_url, json={}, trust_env=False)
        # Its connection may close a moment before its port does.
        assert wait_for(lambda: not server.alive()) and server.cause() == (
            "RuntimeError: the engine core broke",
            "other",
        )


def test_nothing_outlives_a_killed_guardian(tmp_path):
    with serve(launch(tmp_path, "--stubborn-child")) as server:
        pids = server.pids()
        assert len(pids) == 2
        server._guardian.kill()
        assert not still_there(pids[:1])
        assert not server.alive() and server.cause() == ("its guardian process was killed", "killed")
    assert not still_there(pids)


@pytest.mark.parametrize("worker", ["stays", "ends"])
def test_a_killed_worker_is_a_death_and_a_finished_helper_is_not(tmp_path, monkeypatch, worker):
    monkeypatch.setattr(server_process, "WORKER_CPU_S", 0.2)
    monkeypatch.setattr(server_process, "ZOMBIE_S", 0.3)
    monkeypatch.setattr(server_process, "SNAPSHOT_AGE_S", 0.05)
    with serve(launch(tmp_path, "--worker", worker)) as server:
        child = child_of(tmp_path / "log")
        # Only a worker that was seen at work is missed.
        assert wait_for(lambda: server.alive() and server._cpu_seconds.get(child, 0) > 0.2)
        if worker == "stays":
            os.kill(child, signal.SIGKILL)
            assert wait_for(lambda: not server.alive())
            assert "died by signal 9 and its launcher did not notice" in server.cause()[0]
        else:
            assert wait_for(lambda: child in server.snapshot().zombies)
            time.sleep(2 * server_process.ZOMBIE_S)
            assert child in server.snapshot().zombies and server.alive()


def test_an_engines_python_variables_are_not_the_guardians(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "hush")
    broken = launch(tmp_path)
    broken.env = {"PYTHONHOME": "/nowhere"}
    broken.argv = ["/bin/sh", "-c", "echo PYTHONHOME is $PYTHONHOME, secret is $SECRET_OF_OURS; exit 4"]
    with pytest.raises(ServerDied, match="exit code 4"), serve(broken):
        pass
    assert (tmp_path / "log").read_text() == "PYTHONHOME is /nowhere, secret is\n"


def test_an_engine_that_ends_before_it_is_looked_at_has_its_exit_code_told(tmp_path):
    script = (
        "import subprocess, time\n"
        "from runners.serve import supervisor\n"
        "class Slow(subprocess.Popen):\n"
        "    def __init__(self, *args, **named):\n"
        "        super().__init__(*args, **named)\n"
        "        time.sleep(0.3)\n"  # the child has ended before anything else happens here
        "subprocess.Popen = Slow\n"
        f"found = supervisor.Guardian(['/bin/sh', '-c', 'exit 4'], {str(tmp_path / 'log')!r}, 1.0)\n"
        "found.reap()\n"
        "assert found.returncode == 4, found.returncode\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and '{"ended": 4}' in done.stdout, done.stderr


def test_a_log_is_followed_by_pieces_and_a_progress_bar_has_lines(tmp_path):
    log = tmp_path / "log"
    tail = LogTail(log)
    assert list(tail) == []
    log.write_bytes(b"one\r\nshards 10%\rshards 2" + "é".encode()[:1])
    assert list(tail) == ["one", "shards 10%"]
    with open(log, "ab") as handle:
        handle.write("é".encode()[1:] + b"\nthree")
    assert list(tail) == ["shards 2é"]
    assert list(tail) == [] and list(tail.all_lines()) == ["three"]


def test_only_what_moves_by_more_than_noise_is_life():
    still = Snapshot(at=0.0, cpu_seconds=5.0, read_bytes=10**6, rss=10**8, log_bytes=7)
    assert Snapshot(2.0, 5.01, 10**6 + 4096, 10**8 + 4096, 7).alive_since(still) == []
    assert Snapshot(2.0, 5.5, 10**7, 10**8 - 2**21, 8).alive_since(still) == ["CPU", "bytes read", "memory", "log"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_the_process_that_started_it(tmp_path, number):
    """SIGKILL as when a notebook's kernel is killed, SIGINT as Ctrl-C."""
    port = ports.free_port()
    code = f"""
import signal, sys, time
from pathlib import Path
from runners.serve import ports, server_process
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests themselves run in the background
from runners.serve.server import serve
launch = server_process.Launch("fake", [sys.executable, {str(FAKE)!r}, "--port", "{port}", "--stubborn-child"], {{}},
                       Path({str(tmp_path / "log")!r}), {port}, lambda line: None, lambda lines: None,
                       grace_seconds=0.3)
with serve(launch) as server:
    print(*server.pids(), flush=True)
    time.sleep(60)
"""
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    pids = [int(p) for p in child.stdout.readline().split()]
    assert len(pids) >= 2
    child.send_signal(number)
    child.wait(timeout=60)
    assert not still_there(pids)


def test_a_port_in_use_names_who_holds_it():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with pytest.raises(UserError, match=r"in use by .*set `port`"):
            ports.check_port("127.0.0.1", s.getsockname()[1])


def test_attach_leaves_the_server_running(tmp_path):
    with serve(launch(tmp_path)) as server:
        with attach(server.base_url) as attached:
            assert attached.attached and attached.alive() and attached.pids() == []
        assert server.alive()


def test_attach_to_something_else_is_refused(tmp_path):
    with (
        serve(launch(tmp_path)) as server,
        pytest.raises(UserError, match="answers 404"),
        attach(server.base_url, "/other"),
    ):
        pass


def test_attach_to_nothing_says_what_to_do():
    with pytest.raises(UserError, match="No server answers at .*attach.url"), attach("http://127.0.0.1:9"):
        pass
