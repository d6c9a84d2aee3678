"""What a cell's key hangs on: whatever changes a figure, and no secret."""

from runners.measure import cell_key
from runners.profiles import load
from runners.profiles.points import Point

LAB = load.load("lab-cpu")
POINT = Point("chat", 1, 0, 0, 4)


def settings(**flags):
    content = LAB.model_dump(mode="json")
    content["configurations"]["vllm-base"]["flags"] |= flags
    content["configurations"]["vllm-base"]["env"] |= {"HF_TOKEN": flags.get("api-key", "")}
    return cell_key.settings(type(LAB).model_validate(content), "vllm-base", POINT, None)


def test_another_api_key_is_the_same_setting_and_another_flag_is_not():
    one = {"api-key": "planted-key-1"}
    assert settings(**one) == settings(**{"api-key": "planted-key-2"})
    assert settings(**one) != settings(**one, seed=7)


def test_no_secret_is_hashed():
    content = LAB.model_dump(mode="json")
    content["configurations"]["vllm-base"]["flags"] |= {"api-key": "planted-key-1"}
    facts = cell_key.settings_facts(type(LAB).model_validate(content), "vllm-base", POINT, None)
    assert "planted" not in str(facts)
