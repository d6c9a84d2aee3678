"""What is watched while a cell runs: other work's cores, steal, the server's peak of running requests."""

import time
from types import SimpleNamespace

import psutil
import pytest
from slowness import wait_for

from runners.measure import monitors


@pytest.fixture
def machine(monkeypatch):
    """A machine of four cores whose clock and CPU times the test sets."""
    state = SimpleNamespace(now=100.0, times=SimpleNamespace(user=10.0, nice=0.0, system=5.0, steal=0.0), own=0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: state.now)
    monkeypatch.setattr(psutil, "cpu_times", lambda: state.times)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 4)
    return state


def test_neighbours_are_what_the_machine_did_beyond_our_own_work(machine):
    monitor = monitors.NeighbourMonitor(lambda: machine.own)
    monitor.start()
    # Ten seconds with 12 CPU seconds of work, 9 of them ours, and 2 CPU seconds stolen of 40.
    machine.now, machine.own = 110.0, 9.0
    machine.times = SimpleNamespace(user=20.0, nice=0.0, system=7.0, steal=2.0)
    assert monitor.stop() == pytest.approx((0.3, 0.05))


def test_neighbours_are_never_below_zero(machine):
    monitor = monitors.NeighbourMonitor(lambda: machine.own)
    monitor.start()
    machine.now, machine.own = 101.0, 0.01  # our own times were read a moment after the machine's
    assert monitor.stop() == (0.0, 0.0)


def test_busy_seconds_leave_out_waiting_and_steal():
    times = SimpleNamespace(
        user=1.0, nice=2.0, system=4.0, irq=8.0, softirq=16.0, idle=100.0, iowait=100.0, steal=100.0
    )
    assert monitors.busy_seconds(times) == 31.0
    assert monitors.busy_seconds(SimpleNamespace(user=1.0, nice=0.0, system=2.0)) == 3.0, (
        "not every system has the others"
    )


def test_the_peak_is_the_largest_value_seen_and_a_missed_poll_is_none():
    values = [2.0, None, 4.0, 3.0]
    peak = monitors.PeakRunning(lambda: values.pop(0) if values else None, every_s=0.01)
    peak.start()
    assert wait_for(lambda: not values)
    assert peak.stop() == 4.0 and not peak.is_alive()


def test_the_peak_of_a_server_that_never_answers_is_unknown():
    polls = []
    peak = monitors.PeakRunning(lambda: polls.append(1), every_s=0.01)
    peak.start()
    assert wait_for(lambda: polls)
    assert peak.stop() is None


def test_the_first_poll_waits():
    polls = []
    peak = monitors.PeakRunning(lambda: polls.append(1), every_s=30)
    peak.start()
    assert peak.stop() is None and not polls
