"""A slow load is not a hang: the watcher against a loader that is slow, stuck, spinning or dead, each by its name.

The loader reads a sparse file of the case's 547 GB. Budgets are seconds here and hours there; the rule is the same.
"""

import sys
import time
from pathlib import Path

import pytest

from runners.serve import ports, server, server_process

LOADER = Path(__file__).parents[2] / "support" / "fake_loader.py"
BUDGETS = {"loading weights": 1.5, "capturing graphs": 1.5, "default": 1.5}
STALL, LIVELOCK = 2.0, 4.0
SLACK = 8.0  # a loaded machine is slower


def phase_of(line):
    return line if line in BUDGETS else None


def first_error(lines):
    found = [line.split("] ", 1)[-1] for line in lines if "Error: " in line]
    return (found[0], "rank time-out") if found else None


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """547 GB that take no room on the disk."""
    place = tmp_path_factory.mktemp("weights") / "model.safetensors"
    with open(place, "wb") as file:
        file.truncate(547_000_000_000)
    return place


@pytest.fixture(autouse=True)
def looks_twice_a_second(monkeypatch):
    monkeypatch.setattr(server, "LOOK_S", 0.5)


def start(tmp_path, weights, *script, rate="2e9", heard=None):
    """Seconds until it was ready; the watcher's own exceptions come through."""
    port = ports.free_port()
    argv = [sys.executable, str(LOADER), "--port", str(port), "--weights", str(weights), "--rate", rate, *script]
    launch = server_process.Launch(
        "loader", argv, {}, tmp_path / "log", port, phase_of, first_error, budgets=BUDGETS, stall_seconds=STALL,
        livelock_seconds=LIVELOCK, expected_bytes=547_000_000_000, grace_seconds=0.5,
    )  # fmt: skip
    with server.serve(launch, (heard if heard is not None else []).append) as live:
        return live.ready_seconds


@pytest.mark.parametrize(
    "script",
    [
        ("read:5",),  # a slow disk
        ("news:5",),  # loaded through a mapping: only the log tells
        ("compute:5",),  # kernels are compiled: CPU, and a line now and then
        ("grow:5",),  # weights unpacked in silence
        ("read:2", "spin:2.5", "news:1"),  # CPU alone, for less than a livelock's time
    ],
    ids=" ".join,
)
def test_slow_but_alive_is_never_called_stalled(tmp_path, weights, script):
    said = []
    seconds = start(tmp_path, weights, *script, heard=said)
    assert seconds > BUDGETS["loading weights"], "the case must outlast its budget to prove anything"
    assert any("over its budget" in line for line in said)


@pytest.mark.parametrize(
    "script, kind, phase, moved_until",
    [
        (("silent",), "stall", "starting", 0.0),  # never begins
        (("read:2", "silent"), "stall", "loading weights", 2.0),  # a disk that stops answering
        (("news:2", "heartbeat"), "stall", "loading weights", 2.0),  # waits for a rank and says so for ever
        (("read:2", "spin"), "livelock", "loading weights", 2.0),  # spins at 100% and gets nowhere
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else None,
)
def test_what_gets_nowhere_is_named_within_its_time(tmp_path, weights, script, kind, phase, moved_until):
    began = time.monotonic()
    with pytest.raises(server.ServerStalled) as caught:
        start(tmp_path, weights, *script)
    assert (caught.value.kind, caught.value.phase) == (kind, phase)
    patience = STALL if kind == "stall" else LIVELOCK
    allowed = max(BUDGETS.get(phase, BUDGETS["default"]), moved_until + patience)
    assert time.monotonic() - began < allowed + SLACK


@pytest.mark.parametrize(
    "script, words",
    [
        (("read:1", "lose-rank"), "was killed by signal 9|died by signal 9"),
        (("read:1", "kill"), "memory ran out"),
        (("read:1", "error"), "rank 3 timed out"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else None,
)
def test_a_death_is_a_death_and_says_how(tmp_path, weights, script, words, monkeypatch):
    monkeypatch.setattr(server_process, "WORKER_CPU_S", 0.5)
    monkeypatch.setattr(server_process, "ZOMBIE_S", 0.5)
    with pytest.raises(server.ServerDied, match=words) as caught:
        start(tmp_path, weights, *script)
    assert caught.value.phase == "loading weights"


def test_a_long_load_says_how_much_is_read_and_how_long_is_left(tmp_path, weights):
    said = []
    start(tmp_path, weights, "read:3", rate="4e9", heard=said)
    assert any(" of 547 GB at " in line and "s left" in line for line in said)
