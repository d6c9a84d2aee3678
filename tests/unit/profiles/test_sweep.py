"""Sweeps: a list for `k` or a flag becomes named configurations."""

import pytest
import yaml

from runners.core import paths
from runners.core.errors import UserError
from runners.profiles import load
from runners.serve.command import command
from runners.serve.model_files import planned_files

LAB = paths.PROFILES / "lab-cpu.yaml"
EAGLE = {"engine": "vllm", "title": "vLLM + EAGLE-3", "method": "eagle3", "drafter": "aligned"}
EAGLE |= {"max_running_requests": 16}


def loaded(folder, configurations, **presets):
    """The lab's profile with some of its own configurations and these."""
    content = yaml.safe_load(LAB.read_text())
    kept = ("llamacpp-base", "vllm-base", "vllm-ngram")
    content["configurations"] = {n: content["configurations"][n] for n in kept} | configurations
    content["workload"]["open_loop"] = None
    for preset in content["workload"]["presets"].values():
        preset.update({"leave_out": []} | presets)
    file = folder / "mine.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return load.load(str(file))


def new(profile):
    return [n for n in profile.configurations if n not in ("llamacpp-base", "vllm-base", "vllm-ngram")]


def test_a_list_of_k(tmp_path):
    profile = loaded(tmp_path, {"e": EAGLE | {"k": [1, 2, 3]}})
    assert new(profile) == ["e-k1", "e-k2", "e-k3"]
    assert [(c.k, c.title) for c in map(profile.configuration, new(profile))] == [
        (k, f"vLLM + EAGLE-3, K = {k}") for k in (1, 2, 3)
    ]
    assert {profile.base_of(name) for name in new(profile)} == {"vllm-base"}
    assert new(loaded(tmp_path, {"e": EAGLE | {"k": [3]}})) == ["e-k3"]
    assert new(loaded(tmp_path, {"e": EAGLE | {"k": 3}})) == ["e"]


def test_a_list_of_a_flags_values_on_the_command_line(tmp_path):
    flags = {"block-size": [16, 32], "enforce-eager": [True, False], "seed": 1}
    profile = loaded(tmp_path, {"e": EAGLE | {"k": 2, "flags": flags}})
    assert new(profile) == [
        "e-block-size-16-enforce-eager-on",
        "e-block-size-16-enforce-eager-off",
        "e-block-size-32-enforce-eager-on",
        "e-block-size-32-enforce-eager-off",
    ]
    last = new(profile)[-1]
    assert profile.configuration(last).title == "vLLM + EAGLE-3, block-size 32, enforce-eager off"
    argv = [str(word) for word in command(profile, last, planned_files(profile, "aligned"), 1).argv]
    assert argv[argv.index("--block-size") + 1] == "32" and argv[argv.index("--seed") + 1] == "1"
    assert "--enforce-eager" not in argv


def test_k_and_flags_are_multiplied_out_and_mappings_are_numbered(tmp_path):
    configs = [{"prompt_lookup_max": 4}, {"prompt_lookup_max": 8, "sizes": [1, 2]}]
    ngram = {"engine": "vllm", "title": "n-gram", "method": "ngram", "max_running_requests": 16}
    profile = loaded(tmp_path, {"n": ngram | {"k": [3, 5], "flags": {"speculative-config": configs}}})
    assert new(profile) == [f"n-k{k}-speculative-config-{i}" for k in (3, 5) for i in (1, 2)]
    assert profile.configuration(new(profile)[-1]).flags == {"speculative-config": configs[1]}, "its own list stays"


def test_a_value_is_made_fit_for_a_folders_name(tmp_path):
    profile = loaded(tmp_path, {"e": EAGLE | {"k": 2, "flags": {"load": ["/a b", None, 0.5]}}})
    assert new(profile) == ["e-load-a-b", "e-load-None", "e-load-0.5"]
    assert profile.configuration("e-load-a-b").title == "vLLM + EAGLE-3, load /a b"


def test_what_names_a_sweep_means_all_of_it(tmp_path):
    profile = loaded(tmp_path, {"e": EAGLE | {"k": [1, 2]}}, leave_out=["e", "vllm-ngram"])
    assert profile.preset("quick").leave_out == ["e-k1", "e-k2", "vllm-ngram"]


def test_the_first_of_a_swept_base_is_the_base_and_equal_flags_are_compared(tmp_path):
    base = {"engine": "vllm", "title": "b", "max_running_requests": 16}
    swept = {"flags": {"block-size": [16, 32]}}
    content = {
        "b": base | swept | {"base": True},
        "e": EAGLE | swept | {"k": [1, 2], "base": "b"},
        "f": EAGLE | {"k": 1, "base": "b"},
    }
    text = yaml.safe_load(LAB.read_text())
    assert "vllm-base" in text["configurations"]
    with pytest.raises(UserError, match="do not draft: set `base: true` on exactly one of them"):
        loaded(tmp_path, content | {"c": base | swept | {"base": True}})
    profile = loaded(tmp_path, content)
    assert [n for n, c in profile.configurations.items() if c.base is True] == ["b-block-size-16"]
    assert profile.base_of("b-block-size-32") == "b-block-size-16" == profile.base_of("vllm-ngram")
    assert {n: profile.base_of(n) for n in new(profile) if n[0] in "ef"} == {
        "e-k1-block-size-16": "b-block-size-16",
        "e-k1-block-size-32": "b-block-size-32",
        "e-k2-block-size-16": "b-block-size-16",
        "e-k2-block-size-32": "b-block-size-32",
        "f": "b-block-size-16",
    }


def test_a_swept_profile_written_back_is_the_same(tmp_path):
    profile = loaded(tmp_path, {"e": EAGLE | {"k": [1, 2], "flags": {"block-size": [16, 32]}}})
    back = tmp_path / "back.yaml"
    back.write_text(yaml.safe_dump(profile.model_dump(mode="json"), sort_keys=False))
    assert load.load(str(back)) == profile


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"k": []}, "Profile mine.yaml: `k` of configuration `e` must list at least one value"),
        ({"k": 1, "flags": {"block-size": []}}, "`block-size` of configuration `e` must list at least one value"),
        ({"k": [1, 1]}, "two configurations get the name `e-k1`"),
        ({"k": [1, 0]}, "`configurations.e-k0.k` must be greater than or equal to 1"),
        ({"k": ["x"]}, "`configurations.e-kx.k` must be a valid integer"),
        ({"k": [3, 5], "forced_accept_length": 5.0}, "`forced_accept_length` must be between 1 and k"),
    ],
)
def test_a_mistake_in_a_sweep_is_one_sentence(tmp_path, change, sentence):
    with pytest.raises(UserError, match=sentence):
        loaded(tmp_path, {"e": EAGLE | change})
