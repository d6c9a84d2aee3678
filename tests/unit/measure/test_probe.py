"""One short request to a server that runs already."""

import sys
from pathlib import Path

import pytest
from canned_server import canned
from slowness import WAIT_S

from runners.core.errors import UserError
from runners.measure.probe import probe
from runners.serve import ports, server_process
from runners.serve.server import serve

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


@pytest.fixture
def fake(tmp_path):
    def start(*flags):
        port = ports.free_port()
        argv = [sys.executable, str(FAKE), "--port", str(port), *flags]
        launch = server_process.Launch(
            "fake", argv, {}, tmp_path / "log", port, lambda _: None, lambda _: None, grace_seconds=0.3
        )
        return serve(launch)

    return start


@pytest.mark.slow
def test_it_tells_how_fast_a_stream_is_and_how_answers_end(fake):
    with fake("--token-s", "0.01") as server:
        found = probe(server.base_url, {}, "m", {}, WAIT_S)
    assert found.ends == "fixed" and 0 < found.tokens_per_second < 110
    with fake("--stop-at", "5") as server:
        assert probe(server.base_url, {}, "m", {}, WAIT_S).ends == "natural"


@pytest.mark.slow
def test_a_stream_without_a_count_is_said_so(fake):
    with fake("--no-usage") as server, pytest.raises(UserError, match="counts no tokens in its stream"):
        probe(server.base_url, {}, "m", {}, WAIT_S)


def test_a_refused_request_is_quoted():
    with canned({}) as url, pytest.raises(UserError, match="does not answer a chat request for m: HTTP 501"):
        probe(url, {}, "m", {}, WAIT_S)
