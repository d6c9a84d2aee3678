"""The limits of the gates in a profile: which engine must repeat the base's text exactly."""

import pytest
from pydantic import ValidationError

from runners.profiles import load
from runners.profiles.gate_limits import Gates


@pytest.mark.parametrize(
    ("rule", "exact"),
    [
        ("exact", {"vllm": True, "llamacpp": True}),
        ("floor", {"vllm": False, "llamacpp": False}),
        ({"vllm": "exact"}, {"vllm": True, "llamacpp": False}),
    ],
)
def test_texts_are_exact_for_all_engines_or_by_engine(rule, exact):
    gates = Gates(equal_to_base=rule)
    assert {engine: gates.exact_text(engine) for engine in exact} == exact


@pytest.mark.parametrize("rule", ["equal", {"vllm": "equal"}, {"no-engine": "exact"}])
def test_an_unknown_rule_or_engine_is_refused(rule):
    with pytest.raises(ValidationError):
        Gates(equal_to_base=rule)


def test_the_sweeps_longer_contexts_have_a_lower_floor():
    lab, sweeps = (load.load(name).gates for name in ("lab-cpu", "lab-cpu-sweeps"))
    assert lab.exact_text("vllm") and sweeps.exact_text("vllm") and not lab.exact_text("llamacpp")
    assert sweeps.equal_to_base_floor < lab.equal_to_base_floor
    assert sweeps.model_copy(update={"equal_to_base_floor": lab.equal_to_base_floor}) == lab
