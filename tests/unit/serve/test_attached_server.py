"""A server that was there before us: keys, gateways, and what is said of it where it does not answer as wished."""

import httpx
import pytest
from canned_server import canned

from runners.core.errors import UserError
from runners.profiles.attach import Attach
from runners.serve.attached_server import attach, request_headers

MODELS = {"data": [{"id": "m"}]}


def test_the_key_is_read_from_its_variable_and_headers_may_name_others(monkeypatch):
    monkeypatch.setenv("MY_KEY", "hush-hush-hush")
    headers = {"X-Team": "a", "X-Id": "id ${MY_KEY}"}
    found = request_headers(Attach(url="http://box", api_key_env="MY_KEY", headers=headers))
    assert found == {"X-Team": "a", "X-Id": "id hush-hush-hush", "Authorization": "Bearer hush-hush-hush"}
    assert request_headers(None) == {}


def test_a_variable_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(UserError, match="environment variable MY_KEY must hold the server's key and is not set"):
        request_headers(Attach(url="http://box", api_key_env="MY_KEY"))


def test_a_missing_key_is_said_as_what_it_is():
    # As vLLM does: its health check is open, what it serves is not.
    with canned({"/health": "", "/v1/models": MODELS}, key="k") as url:
        with pytest.raises(UserError, match="answers 401: it wants an API key: name the variable"), attach(url):
            pass
        with attach(url, headers={"Authorization": "Bearer k"}) as server:
            assert server.alive()


def test_a_gateway_without_a_health_check_is_attached_to_by_its_models():
    with canned({"/team/v1/models": MODELS}) as url, attach(f"{url}/team") as server:
        assert server.health() == 200 and server.base_url == f"{url}/team"


def test_a_server_that_still_loads_is_waited_for_by_a_person():
    with (
        canned({"/health": 503}) as url,
        pytest.raises(UserError, match="/health answers 503; wait until it is ready"),
        attach(url),
    ):
        pass


def test_a_server_that_went_away_did_not_die_as_far_as_we_know():
    with canned({"/health": ""}) as url, attach(url) as server:
        assert server.cause() is None
    assert not server.alive() and server.cause()[0] == f"{url} does not answer any more"
    with pytest.raises(httpx.TransportError):
        server.health()
