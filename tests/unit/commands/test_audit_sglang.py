"""The audit reads syntax trees: each rule on sources written for it."""

import pytest

from runners.commands import audit_sglang

ALWAYS = """
class A:
    def set_eagle3_layers_to_capture(self, layer_ids=None):
        if layer_ids is None:
            self.model.layers_to_capture = [2, 3]
        else:
            self.model.layers_to_capture = [val + 1 for val in layer_ids]
"""
FIRST = (
    ALWAYS.replace("else:", "elif layer_ids[0] == 1:")
    + """
        else:
            self.model.layers_to_capture = list(layer_ids)
"""
)
RATE = """
def log(self):
    if none:
        spec_accept_rate = 0
    else:
        total = steps * num_draft_tokens
        spec_accept_rate = accepted / total if total else 0
"""


@pytest.mark.parametrize(
    ("source", "rule"),
    [(ALWAYS, "always"), (FIRST, "first id is 1"), (ALWAYS.replace("val + 1", "val"), "never"), ("x = 1", "absent")],
)
def test_when_one_is_added(source, rule):
    assert audit_sglang.plus_one(source) == rule


def test_the_accept_rate_over_d_or_over_d_less_one():
    assert audit_sglang.accept_rate(RATE) == "AL / D"
    assert (
        audit_sglang.accept_rate(RATE.replace("* num_draft_tokens", "* (num_draft_tokens - 1)")) == "(AL - 1) / (D - 1)"
    )
    assert audit_sglang.accept_rate("def f():\n    spec_accept_rate = 0\n") is None


def test_the_default_cap_however_it_is_set():
    said = "\nwarn('Max running requests is reset to 48 for speculative decoding.')"
    assert audit_sglang.default_caps("self.max_running_requests = 48" + said) == {48}
    assert audit_sglang.default_caps("declare(args, 'hook', max_running_requests=48)" + said) == {48}
    assert audit_sglang.default_caps("set_default(args, 'max_running_requests', 48)" + said) == {48}
    assert audit_sglang.default_caps("self.max_running_requests = 256" + said) == set()
    assert audit_sglang.default_caps("self.max_running_requests = None\nx = 48" + said) == set()


def test_a_release_without_the_model_has_no_patch_to_need():
    row = audit_sglang.audit({"sglang/srt/models/llama.py": ALWAYS})
    assert row["kimi_k25"] == "absent" and row["patch"] == "no model" and row["plus_one_llama"] == "always"
