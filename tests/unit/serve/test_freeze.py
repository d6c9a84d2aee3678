"""A frozen server does nothing, comes back as it was, and is brought down in time although it stands still."""

import sys
import time
from pathlib import Path

import httpx
import pytest

from runners.core.errors import UserError
from runners.serve import freeze, ports, server_process
from runners.serve.attached_server import AttachedServer
from runners.serve.server import serve

pytestmark = pytest.mark.slow  # starts processes

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


@pytest.fixture
def launch(tmp_path):
    port = ports.free_port()
    argv = [sys.executable, str(FAKE), "--port", str(port)]
    budgets = {"stall_seconds": 60.0, "budgets": {"default": 60.0}, "grace_seconds": 30.0}
    return server_process.Launch("fake", argv, {}, tmp_path / "log", port, lambda _: None, lambda _: None, **budgets)


def cpu_seconds(server):
    return server.snapshot().cpu_seconds


def test_a_frozen_server_stands_still_and_goes_on_as_before(launch):
    with serve(launch) as server:
        with freeze.frozen([server]):
            assert {freeze.state_of(pid) for pid in server.pids()} == {"T"}
            before = cpu_seconds(server)
            with pytest.raises(httpx.ReadTimeout):
                httpx.get(server.base_url + "/health", timeout=0.5, trust_env=False)
            assert cpu_seconds(server) == before
            assert server.alive(), "frozen is not dead"
        assert httpx.get(server.base_url + "/health", timeout=30, trust_env=False).status_code == 200


def test_a_server_that_stands_still_hears_that_it_shall_end(launch):
    with serve(launch) as server:
        freeze.freeze(server)
        pids, began = server.pids(), time.monotonic()
    assert time.monotonic() - began < launch.grace_seconds / 2, "it was not waited for, and then killed"
    assert not [pid for pid in pids if freeze.state_of(pid) not in ("", "Z", "X")]


def test_a_server_that_is_not_ours_is_not_frozen():
    with pytest.raises(UserError, match="not ours"):
        freeze.freeze(AttachedServer("http://127.0.0.1:1", "/health"))


def test_a_thaw_follows_whatever_happens(launch):
    with serve(launch) as server:
        with pytest.raises(RuntimeError), freeze.frozen([server]):
            raise RuntimeError("a cell went wrong")
        assert "T" not in {freeze.state_of(pid) for pid in server.pids()}
