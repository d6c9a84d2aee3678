"""The guardian by itself: what it reports, and that nothing below it outlives its input."""

import json
import subprocess
import sys

import psutil
import pytest
from slowness import WAIT_S, wait_for

from runners.serve import server, supervisor

pytestmark = pytest.mark.slow  # starts processes and measures time


@pytest.fixture
def guard(tmp_path):
    """Start a guardian over a shell command; (process, next event, log)."""
    started = []

    def start(command, grace="0.3"):
        argv = [sys.executable, "-I", str(server.GUARDIAN), "--log", str(tmp_path / "log"), "--grace", grace, "--"]
        child = subprocess.Popen([*argv, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(child)
        return child, lambda: json.loads(child.stdout.readline()), tmp_path / "log"

    yield start
    for child in started:
        child.kill()
        child.wait()
        child.stdout.close()


def test_it_reports_the_start_and_the_exit_code_and_keeps_the_output(guard):
    child, event, log = guard(["/bin/sh", "-c", "echo out; echo err >&2; exit 4"])
    assert psutil.pid_exists(event()["started"]) and event() == {"ended": 4}
    assert child.wait(WAIT_S) == 0 and log.read_text() == "out\nerr\n"


def test_it_reports_a_program_that_cannot_be_started(guard):
    child, event, _ = guard(["/nowhere/engine"])
    assert event() == {"failed": "/nowhere/engine: No such file or directory"} and child.wait(WAIT_S) == 1


def test_it_reports_a_signal_and_an_adopted_process_that_was_killed(guard):
    # The inner shell leaves its child to the guardian, which then collects it.
    child, event, log = guard(["/bin/sh", "-c", "(sleep 300 & echo $!) ; sleep 300"])
    leader = event()["started"]
    assert wait_for(lambda: log.read_text().endswith("\n"))
    adopted = int(log.read_text())
    psutil.Process(adopted).kill()
    assert event() == {"lost": adopted, "signal": 9}
    psutil.Process(leader).terminate()
    assert event() == {"ended": -15} and child.wait(WAIT_S) == 0


def test_everything_ends_when_its_input_closes(guard):
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    child, event, log = guard(["/bin/sh", "-c", f"setsid sh -c '{stubborn.replace(chr(39), chr(34))}' & sleep 300"])
    leader = event()["started"]
    assert wait_for(lambda: "ready" in log.read_text())
    below = supervisor.descendants(child.pid)
    assert leader in below and len(below) >= 3
    child.stdin.close()
    assert child.wait(WAIT_S) == 0
    assert not any(psutil.pid_exists(pid) for pid in below)


SECRET = "planted-secret-1"


def test_what_an_engine_prints_of_its_secrets_is_not_in_its_log(tmp_path):
    log = tmp_path / "log"
    argv = [sys.executable, "-I", str(server.GUARDIAN), "--masked", "--log", str(log), "--grace", "0.3", "--"]
    # In one piece, in two, at the very end of what it prints, and by a process that outlives the leader.
    begin, end = SECRET[:7], SECRET[7:]
    says = f"echo key={SECRET}; printf 'in {begin}'; sleep 0.3; echo {end} two;"
    says += f" (trap '' TERM; sleep 0.2; printf {SECRET}) & exit 4"
    with subprocess.Popen([*argv, "/bin/sh", "-c", says], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdin.write(json.dumps([SECRET, "another-one"]).encode() + b"\n")
        child.stdin.flush()
        events = [json.loads(child.stdout.readline()) for _ in range(2)]
        assert events[1] == {"ended": 4}
        assert log.read_text().startswith("key=(not shown)\nin (not shown) two\n"), "all, once the end is reported"
        assert child.wait(WAIT_S) == 0
    assert SECRET not in log.read_text()


def masked(tmp_path, words, *pieces):
    place = tmp_path / "masked"
    place.unlink(missing_ok=True)
    log = supervisor.MaskedLog(str(place), [w.encode() for w in words])
    for piece in pieces:
        log.write(piece.encode())
    before = place.read_bytes().decode()
    log.end()
    return before, place.read_bytes().decode()


def test_words_are_left_out_however_they_come(tmp_path):
    whole = "a secret-abcd b secret-abcdefgh c"
    wanted = "a (not shown) b (not shown) c"
    words = ["secret-abcd", "secret-abcdefgh", "cd b sec"]
    assert masked(tmp_path, words[:2], whole)[1] == wanted
    for at in range(len(whole)):
        assert masked(tmp_path, words[:2], whole[:at], whole[at:])[1] == wanted, at
        assert "secret-abcd" not in masked(tmp_path, words, whole[:at], whole[at:])[1], at
    assert masked(tmp_path, words[:2], *whole)[1] == wanted


def test_only_what_may_begin_a_word_waits(tmp_path):
    assert masked(tmp_path, ["secret-1"], "50%\r", "sec") == ("50%\r", "50%\rsec")
