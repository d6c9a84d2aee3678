"""A slow load is not a hang: the watcher against a loader that is slow, stuck, spinning or dead, each by its name.

The loader reads a sparse file of the case's 547 GB. Budgets are seconds here and hours there; the rule is the same.
All times are multiplied by how slow the machine is just now.
"""

import sys
import time
from pathlib import Path

import pytest
from slowness import slowness

from runners.serve import ports, server_process, wait_until_ready
from runners.serve.server import serve

pytestmark = pytest.mark.slow  # starts processes and measures time

LOADER = Path(__file__).parents[2] / "support" / "fake_loader.py"
BUDGETS = {"loading weights": 1.0, "capturing graphs": 1.0, "default": 1.0}
STALL, LIVELOCK = 1.5, 3.0
SLACK = 10.0


def phase_of(line):
    return line if line in BUDGETS else None


def first_error(lines):
    found = [line.split("] ", 1)[-1] for line in lines if "Error: " in line]
    return (found[0], "rank time-out") if found else None


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """547 GB that take no room on the disk."""
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    with open(path, "wb") as file:
        file.truncate(547_000_000_000)
    return path


@pytest.fixture(autouse=True)
def looks_four_times_a_second(monkeypatch):
    monkeypatch.setattr(wait_until_ready, "LOOK_S", 0.25)


def scaled(step):
    """`read:2` on a machine half as fast is `read:4`."""
    name, _, seconds = step.partition(":")
    return f"{name}:{float(seconds) * slowness()}" if seconds else name


def start(tmp_path, weights, *script, rate="2e9", progress=lambda _: None, flags=()):
    """Seconds until it was ready; the watcher's own exceptions come through."""
    port = ports.free_port()
    argv = [sys.executable, str(LOADER), "--port", str(port), "--weights", str(weights), "--rate", rate, *flags]
    launch = server_process.Launch(
        "loader", [*argv, *map(scaled, script)], {}, tmp_path / "log", port, phase_of, first_error,
        budgets={phase: seconds * slowness() for phase, seconds in BUDGETS.items()},
        stall_seconds=STALL * slowness(), livelock_seconds=LIVELOCK * slowness(),
        expected_bytes=547_000_000_000, grace_seconds=0.5,
    )  # fmt: skip
    with serve(launch, progress) as server:
        return server.ready_seconds


@pytest.mark.parametrize(
    "script",
    [
        ("read:2.5",),  # a slow disk
        ("news:2.5",),  # loaded through a mapping: only the log tells
        ("compute:2.5",),  # kernels are compiled: CPU, and a line now and then
        ("grow:2.5",),  # weights unpacked in silence
        ("read:0.5", "spin:2", "news:0.5"),  # CPU alone, for longer than a stall's time and less than a livelock's
    ],
    ids=" ".join,
)
def test_slow_but_alive_is_never_called_stalled(tmp_path, weights, script):
    reports = []
    seconds = start(tmp_path, weights, *script, progress=reports.append)
    assert seconds > STALL * slowness(), "the case must outlast its budget and a stall's time to prove anything"
    assert any("over its budget" in line for line in reports)


@pytest.mark.parametrize(
    "script, kind, phase, moved_until",
    [
        (("silent",), "stall", "starting", 0.0),  # never begins
        (("read:1", "silent"), "stall", "loading weights", 1.0),  # a disk that stops answering
        (("news:1", "heartbeat"), "stall", "loading weights", 1.0),  # waits for a rank and says so for ever
        (("read:1", "spin"), "livelock", "loading weights", 1.0),  # spins at 100% and gets nowhere
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else None,
)
def test_what_gets_nowhere_is_named_within_its_time(tmp_path, weights, script, kind, phase, moved_until):
    began = time.monotonic()
    with pytest.raises(wait_until_ready.ServerStalled) as caught:
        start(tmp_path, weights, *script)
    assert (caught.value.kind, caught.value.phase) == (kind, phase)
    patience = STALL if kind == "stall" else LIVELOCK
    allowed = max(BUDGETS.get(phase, BUDGETS["default"]), moved_until + patience)
    assert time.monotonic() - began < (allowed + SLACK) * slowness()


@pytest.mark.parametrize(
    "script, words",
    [
        (("read:0.5", "kill"), "memory ran out"),
        (("read:0.5", "error"), "rank 3 timed out"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else None,
)
def test_a_death_is_a_death_and_says_how(tmp_path, weights, script, words):
    with pytest.raises(wait_until_ready.ServerDied, match=words) as caught:
        start(tmp_path, weights, *script)
    assert caught.value.phase == "loading weights"


def test_a_lost_rank_is_a_death_and_no_stall(tmp_path, weights, monkeypatch):
    """It waits for the dead rank in silence for longer than a stall's time: the zombie explains the silence."""
    monkeypatch.setattr(server_process, "WORKER_CPU_S", 0.2)
    monkeypatch.setattr(server_process, "ZOMBIE_S", 2 * STALL * slowness())
    log, seen_at_work = tmp_path / "log", []

    def kill_the_rank_once_seen_at_work(_):
        # A report follows a snapshot: the second one after the rank's own line has seen what the rank had used.
        if "has worked" in log.read_text():
            seen_at_work.append(True)
        if len(seen_at_work) == 2:
            (tmp_path / "go").touch()

    with pytest.raises(wait_until_ready.ServerDied, match="was killed by signal 9|died by signal 9") as caught:
        flags = ("--go", str(tmp_path / "go"))
        start(tmp_path, weights, "read:0.5", "lose-rank", flags=flags, progress=kill_the_rank_once_seen_at_work)
    assert caught.value.phase == "loading weights"


def test_a_long_load_says_how_much_is_read_and_how_long_is_left(tmp_path, weights):
    reports = []
    start(tmp_path, weights, "read:2", rate="4e9", progress=reports.append)
    assert any(" of 547 GB at " in line and "s left" in line for line in reports)
