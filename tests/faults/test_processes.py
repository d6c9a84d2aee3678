"""What happens around a measurement: a server killed in a cell, one on our port, a clock that jumps, no descriptors."""

import signal
import subprocess
import sys
import threading
import time

import matrix
import pytest
from slowness import WAIT_S, wait_for

from runners.__main__ import main
from runners.core.paths import ROOT
from runners.measure import client, gates
from runners.readers.records import Counters
from runners.serve import ports, server_process
from runners.serve.server import serve
from runners.serve.wait_until_ready import ServerDied

FAULTY = ROOT / "runners" / "standins" / "faulty.py"
FAKE = ROOT / "tests" / "support" / "fake_server.py"


def jobs(n, tokens=8):
    asked = client.body("m", [{"role": "user", "content": "x"}], tokens, 0.0, {})
    return [client.Job(f"p{i}", asked) for i in range(n)]


def test_a_clock_that_is_set_back_changes_no_time(server, monkeypatch):
    now = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    loop = client.closed_loop(f"{server}/good", jobs(2), 1, WAIT_S)
    for r in loop.results:
        assert r.error is None and 0 <= r.sent_s < r.first_token_s <= r.last_token_s <= loop.seconds < WAIT_S


def test_counters_that_were_reset_within_a_cell_are_no_counts():
    with pytest.raises(ValueError, match="went backwards .*: the engine restarted"):
        Counters(steps=5).since(Counters(steps=9))
    # Reset, and past the old count again by the end: the tokens that the client received do not agree.
    since = Counters(output_tokens=150).since(Counters(output_tokens=100))
    assert gates.counts_agree(since.output_tokens, 150) == "the server counted 50 output tokens, the client 150"


@pytest.mark.slow
def test_a_server_that_is_killed_in_a_cell_ends_its_requests_alone(server):
    port = ports.free_port()
    child = subprocess.Popen([sys.executable, str(FAULTY), "--port", str(port)], stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline().startswith(b"faults: ") and wait_for(lambda: ports.listened(port))
        kill = threading.Timer(0.5, child.send_signal, (signal.SIGKILL,))
        kill.start()
        loop = client.closed_loop(f"http://127.0.0.1:{port}/good", jobs(3, tokens=10_000), 3, WAIT_S)
        kill.join()
    finally:
        child.kill()
        child.wait()
    assert all(r.error for r in loop.results) and loop.seconds < WAIT_S
    assert all(r.error is None for r in client.closed_loop(f"{server}/good", jobs(2), 2, WAIT_S).results)


@pytest.mark.slow
def test_a_port_that_another_took_between_choice_and_start_is_found_out(server, tmp_path):
    """Its health check answers in our server's place; our own process ends, and that counts."""
    port = int(server.rpartition(":")[2])
    argv = [sys.executable, str(FAKE), "--port", str(port)]
    launch = server_process.Launch(
        "fake", argv, {}, tmp_path / "log", port, lambda _: None, lambda _: None, grace_seconds=0.3
    )
    try:
        with serve(launch) as found:
            assert wait_for(lambda: not found.alive()), "a stranger answered"
            cause = found.cause()[0]
    except ServerDied as died:
        cause = died.cause
    assert cause == "ended with exit code 1 without an error"


WITHOUT_DESCRIPTORS = """
import resource, sys
from runners.measure import client
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
asked = client.body("m", [{"role": "user", "content": "x"}], 8, 0.0, {})
loop = client.closed_loop(sys.argv[1], [client.Job(str(i), asked) for i in range(64)], 64, 60.0)
errors = [r.error for r in loop.results if r.error]
print(len(loop.results), len(errors) > 0, all("Too many open files" in e for e in errors))
"""


@pytest.mark.slow
def test_a_client_without_descriptors_voids_its_requests(server):
    words = [sys.executable, "-c", WITHOUT_DESCRIPTORS, f"{server}/good"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, cwd=ROOT)
    assert done.stdout.split() == ["64", "True", "True"], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("fault", [f for f in matrix.ODD if f.name in ("usage-nan", "brackets")], ids=lambda f: f.name)
def test_a_question_to_an_odd_server_is_one_sentence(server, fault, capsys):
    asked = ["ask", "--base", f"{server}/good", "--spec", f"{server}/{fault.name}", "--prompts", "chat"]
    assert main([*asked, "--minutes", "0.1"]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert fault.said in said[-1] and said[-1].startswith("error: ")
