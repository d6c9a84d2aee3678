"""What surrounds a server: who can reach it, what it says of itself, and that a dead one is called what it was."""

import matrix
import pytest
from canned_server import canned

from runners.core.errors import UserError
from runners.core.validation import validated
from runners.measure.judge import death_reason
from runners.measure.observation import Observation
from runners.profiles.attach import Attach
from runners.serve import exposure
from runners.serve.server_identity import identify


@pytest.mark.parametrize("fault", matrix.EXPOSED, ids=lambda f: f.name)
def test_who_opens_a_server_to_others_is_warned(fault):
    said = exposure.warning("vllm-base", fault.name, ["python", "-m", "server"]) or ""
    assert (fault.said in said) if fault.end == matrix.SAID else said == ""
    assert exposure.warning("vllm-base", fault.name, ["server", "--api-key", "x"]) is None


@pytest.mark.parametrize("fault", matrix.ADDRESSES, ids=lambda f: f.name)
def test_an_address_that_cannot_be_used_is_one_sentence(fault):
    with pytest.raises(UserError) as error:
        validated(Attach, {"url": fault.name}, "mine.yaml")
    assert fault.said in str(error.value) and "hush" not in str(error.value)


SAYS = {
    "a version of lists": {"/server_info": {"version": [[1]]}},
    "a length of words": {"/server_info": {"version": "1", "context_length": "long", "max_running_requests": -3}},
    "caps of texts": {
        "/server_info": {"version": "1", "internal_states": [{"effective_max_running_requests_per_dp": "x"}]}
    },
    "models of texts": {"/v1/models": {"data": ["x"]}},
    "models that are a number": {"/v1/models": "7"},
    "a name with ESC": {"/v1/models": {"data": [{"id": "\x1b[31mred", "owned_by": "vllm"}]}},
    "brackets": {"/v1/models": "[" * 100_000},
}


@pytest.mark.parametrize("fault", matrix.SAYINGS, ids=lambda f: f.name)
def test_what_a_server_says_of_itself_is_taken_where_it_can_be_true(fault):
    usual = {"/v1/models": {"data": [{"id": "m", "owned_by": "sglang"}]}, "/health": ""}
    with canned(usual | SAYS[fault.name]) as url:
        if fault.end == matrix.REFUSED:
            with pytest.raises(UserError, match=fault.said):
                identify(url, {}, "sglang")
            return
        found = identify(url, {})
    facts = found.facts
    assert found.model.isprintable()
    assert all(n is None or n >= 1 for n in (facts.context_length, facts.max_running_requests, facts.k))
    assert facts.version is None or facts.version.isprintable()


def test_a_server_that_is_not_ours_did_not_die(server):
    gone = Observation("2026", None, attached=True, death="http://a:1 does not answer any more")
    assert death_reason(gone) == "http://a:1 does not answer any more"
