"""What a log says of the drafter, and whether method and head fit each other."""

import pytest

from runners.readers.drafter_settings import DrafterSettings, drafter_settings

VLLM = "non-default args: {'speculative_config': {'method': 'eagle', 'model': '/m/EAGLE3-head', "
VLLM += "'num_speculative_tokens': 3}}"
SGLANG = "[2026-01-31 10:00:00] server_args=ServerArgs(model_path='/m/t', speculative_algorithm='EAGLE', "
SGLANG += "speculative_draft_model_path='/m/head')"
LOADED = "[2026-01-31 10:00:09 TP0] Load weight end. elapsed=2.10 s, type=LlamaForCausalLMEagle3, avail mem=3.02 GB"


@pytest.mark.parametrize(
    ("lines", "expected", "disagree"),
    [
        ([VLLM], DrafterSettings("eagle", "EAGLE3-head", 3), True),
        ([VLLM.replace("'eagle'", "'eagle3'")], DrafterSettings("eagle3", "EAGLE3-head", 3), False),
        ([SGLANG, LOADED], DrafterSettings("EAGLE", "LlamaForCausalLMEagle3", None), True),
        ([SGLANG.replace("EAGLE'", "EAGLE3'"), LOADED], DrafterSettings("EAGLE3", "LlamaForCausalLMEagle3"), False),
        ([SGLANG.replace("EAGLE'", "EAGLE3'"), LOADED.replace("Eagle3", "Eagle")], None, True),
        ([SGLANG.replace("'EAGLE'", "None")], DrafterSettings(), False),
        (["Resolved architecture: LlamaForCausalLM", "speculative_config=SpeculativeConfig(method='mtp', model='/m/t', "
          "num_spec_tokens=2)"], DrafterSettings("mtp", None, 2), False),
        (["common: adding speculative implementation 'draft-mtp'"], DrafterSettings("draft-mtp"), False),
        (["loading draft model '/models/d-eagle3.gguf'"], DrafterSettings(None, "d-eagle3.gguf"), False),
        (["nothing of the kind"], DrafterSettings(), False),
    ],
)  # fmt: skip
def test_settings_as_engines_print_them(lines, expected, disagree):
    found = drafter_settings(lines)
    assert expected is None or found == expected
    assert found.disagree() == disagree
