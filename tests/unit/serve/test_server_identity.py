"""Who answers at an address: each engine by its own answers, and what each says of its limits and its drafting."""

import pytest
from canned_server import canned

from runners.core.errors import UserError
from runners.serve.server_identity import identify


def models(owner, **more):
    return {"object": "list", "data": [{"id": "org/model", "owned_by": owner, **more}]}


VLLM = 'vllm:num_requests_running{engine="0"} 0.0\nvllm:generation_tokens_total{engine="0"} 9.0\n'
POSITIONS = "".join(f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} 0.0\n' for i in range(3))


def test_vllm():
    answers = {"/v1/models": models("vllm", max_model_len=4096), "/version": {"version": "0.32.0"}, "/metrics": VLLM}
    with canned(answers) as url:
        found = identify(url, {})
        assert (found.engine, found.model, found.found_by) == ("vllm", "org/model", "/v1/models (owned_by vllm)")
        assert (found.facts.version, found.facts.context_length) == ("0.32.0", 4096)
        assert found.facts.drafts is None and found.counters.output_tokens == 9
        answers["/metrics"] = VLLM + "vllm:spec_decode_num_drafts_total 0.0\n" + POSITIONS
        found = identify(url, {})
        assert found.facts.drafts is True and found.facts.k == 3


def test_llamacpp():
    answers = {
        "/v1/models": models("llamacpp"),
        "/props": {"build_info": "b7000-abc", "total_slots": 4, "default_generation_settings": {"n_ctx": 2048}},
        "/slots": [{"id": i, "n_ctx": 2048, "speculative": True} for i in range(4)],
        "/metrics": "llamacpp:requests_processing 0\nllamacpp:tokens_predicted_total 5\n",
    }
    with canned(answers) as url:
        facts = identify(url, {}).facts
        assert (facts.version, facts.max_running_requests, facts.context_length) == ("b7000-abc", 4, 2048)
        assert facts.drafts is True
        del answers["/slots"]  # a server may hide them
        assert identify(url, {}).facts.drafts is None


def test_sglang():
    info = {"version": "0.5.9", "speculative_algorithm": "EAGLE3", "speculative_num_draft_tokens": 4}
    info |= {"speculative_eagle_topk": 1, "context_length": 8192}
    info |= {"internal_states": [{"effective_max_running_requests_per_dp": 48}] * 2}
    # An older release has /get_server_info; behind a gateway the owner may be anybody.
    answers = {"/v1/models": models("somebody"), "/get_server_info": info, "/metrics": "sglang:num_running_reqs 0\n"}
    with canned(answers) as url:
        found = identify(url, {})
    assert (found.engine, found.found_by) == ("sglang", "/metrics")
    facts = found.facts
    assert (facts.version, facts.method, facts.k, facts.max_running_requests) == ("0.5.9", "EAGLE3", 3, 96)


def test_an_engine_that_is_not_recognised_can_be_named_and_its_own_metrics_are_none():
    with canned({"/v1/models": models("somebody"), "/metrics": "<html>a page</html>"}) as url:
        with pytest.raises(UserError, match=r"The engine at .* was not recognised; name it with --engine \(llamacpp"):
            identify(url, {})
        found = identify(url, {}, kind="vllm")
        assert found.found_by == "--engine" and found.counters is None and found.facts.drafts is None


def test_several_models_and_one_that_is_not_served():
    both = {"data": [{"id": "a", "owned_by": "vllm"}, {"id": "b", "owned_by": "vllm"}]}
    with canned({"/v1/models": both}) as url:
        assert identify(url, {}).model == "a" and identify(url, {}, model="b").model == "b"
        with pytest.raises(UserError, match="serves no model `c`; it serves a, b"):
            identify(url, {}, model="c")


def test_no_server_no_key_and_no_model_are_said_so():
    with pytest.raises(UserError, match="No server answers at http://127.0.0.1:9; start it"):
        identify("http://127.0.0.1:9", {})
    with canned({"/v1/models": models("vllm")}, key="k") as url:
        with pytest.raises(UserError, match="answers 401: it wants an API key"):
            identify(url, {})
        assert identify(url, {"Authorization": "Bearer k"}).engine == "vllm"
    with canned({"/version": {"version": "1"}}) as url, pytest.raises(UserError, match="lists no model; name the one"):
        identify(url, {})
