"""Each way in which the next command would stop is a blocker of the pre-flight, and the plan shows the same command."""

import socket
import sys

import fake_profile
import pytest
import tiny_models
import yaml

from runners.__main__ import main
from runners.commands import show_plan
from runners.commands.preflight import all_checks, machine, workload
from runners.core import locks, paths
from runners.profiles import load as profiles_load
from runners.profiles.profile import Profile
from runners.serve.planned_start import planned_start


def toy(folder, *, models, drafter=None, engine="llamacpp", method="eagle3", **changes):
    """A profile of a base and one that drafts, on files of our own."""
    common = {"engine": engine, "max_running_requests": 4}
    common |= {"flags": {"threads": 2}} if engine == "llamacpp" else {}
    drafts = common | {"title": "drafting", "method": method, "k": 3} | ({"drafter": "own"} if drafter else {})
    content = fake_profile.content(folder)
    content["target"] |= {"layers": 4, "hidden_size": 64, "vocab_size": 99, "context_length": 1024} | models
    content |= {"drafters": {"own": drafter} if drafter else {}, "budgets": {engine: {"default": 60}}}
    content["engines"] = {engine: {"version": "0", "python": sys.executable}}
    content["configurations"] = {"base": common | {"title": "base"}, "drafting": drafts}
    for section, values in changes.items():
        content[section] |= values
    return Profile.model_validate(content)


def found(profile, place, level="blocker", **more):
    """The findings of one place in one text."""
    return " | ".join(f.text for f in all_checks.check(profile, **more)[place] if f.level == level)


def plan(profile, tmp_path, capsys):
    show_plan.show(profile, None, tmp_path)
    return capsys.readouterr().out


@pytest.fixture
def model(tmp_path):
    return tiny_models.folder(tmp_path / "model")


@pytest.fixture
def file(tmp_path):
    return tiny_models.gguf(tmp_path / "m.gguf")


@pytest.fixture
def eagle(tmp_path):
    return tiny_models.folder(tmp_path / "eagle", tiny_models.DRAFTER)


def test_llamacpp_with_a_folder_alone(model, tmp_path, capsys):
    profile = toy(tmp_path, models={"path": str(model)}, method="ngram")
    assert "llama.cpp serves a GGUF file and target toy is none" in found(profile, "base")
    assert "  no command   llama.cpp serves a GGUF file" in plan(profile, tmp_path, capsys)


def test_a_folder_engine_with_a_file_alone(file, tmp_path):
    profile = toy(tmp_path, models={"path": str(file)}, engine="vllm", method="ngram")
    assert "vLLM serves a Hugging Face folder and target toy has none" in found(profile, "drafting")


def test_a_drafters_folder_is_exported_for_llamacpp_and_the_plan_shows_it(file, eagle, tmp_path, capsys):
    profile = toy(tmp_path, models={"path": str(file)}, drafter={"path": str(eagle)})
    assert "GGUF" not in found(profile, "drafting")
    argv = [str(word) for word in planned_start(profile, "drafting").command().argv]
    exported = argv[argv.index("--spec-draft-model") + 1]
    assert exported.endswith("drafter.gguf") and str(paths.cache()) in exported
    assert f"--spec-draft-model {exported}" in plan(profile, tmp_path, capsys)


def test_a_drafter_that_is_a_file_is_where_it_is(file, tmp_path):
    drafter = tiny_models.gguf(tmp_path / "d.gguf", {"general.architecture": "eagle3"})
    profile = toy(tmp_path, models={"path": str(file)}, drafter={"path": str(drafter)})
    assert "not at" not in found(profile, "drafting")
    assert "drafter own is a GGUF file" in found(profile, "drafting", "note")
    drafter.unlink()
    assert f"drafter own is not at {drafter}" in found(profile, "drafting")


def test_a_draft_model_that_is_a_folder_is_not_dropped_in_silence(file, model, tmp_path):
    profile = toy(tmp_path, models={"path": str(file)}, drafter={"path": str(model)}, method="draft_model")
    assert "a GGUF file and model is a Hugging Face folder" in found(profile, "drafting")
    both = {"path": str(model), "gguf": str(tiny_models.gguf(tmp_path / "d.gguf"))}
    profile = toy(tmp_path, models={"path": str(file)}, drafter=both, method="draft_model")
    argv = [str(word) for word in planned_start(profile, "drafting").command().argv]
    assert argv[argv.index("--spec-draft-model") + 1] == both["gguf"]
    (tmp_path / "d.gguf").unlink()
    assert f"the GGUF form of drafter own is not at {both['gguf']}" in found(profile, "drafting")


def test_a_file_alone_is_no_drafter_of_an_engine_that_takes_folders(model, file, tmp_path):
    profile = toy(tmp_path, models={"path": str(model)}, drafter={"path": str(file)}, engine="vllm")
    assert "vLLM takes a drafter as a Hugging Face folder and m.gguf is a GGUF file" in found(profile, "drafting")


def test_a_damaged_or_another_gguf_file(file, tmp_path):
    profile = toy(tmp_path, models={"path": str(file), "layers": 9, "bytes_on_disk": 5}, method="ngram")
    assert "m.gguf has layers 4, the profile 9" in found(profile, "target")
    assert "bytes, the profile says 5" in found(profile, "target", "warning")
    file.write_bytes(b"no model")
    assert "m.gguf is not a whole GGUF file" in found(profile, "target")
    file.unlink()
    assert f"the target is not at {file}" in found(profile, "target")


@pytest.mark.parametrize(
    ("flags", "said"),
    [({"thread": 2}, "the following arguments are required: --threads"), ({"threads": 2, "ctx": 5}, "--ctx 5")],
)
def test_the_starters_own_parser_refuses_a_flag(file, tmp_path, flags, said):
    profile = toy(tmp_path, models={"path": str(file)}, method="ngram")
    content = profile.model_dump()
    content["configurations"]["base"]["flags"] = flags
    profile = Profile.model_validate(content)
    assert f"llamacpp's own parser refuses the command line: {said}" in found(profile, "base").replace(
        "unrecognized arguments: ", ""
    )
    assert "takes the command line" in found(profile, "drafting", "note")


def test_a_server_that_does_not_answer(tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{s.getsockname()[1]}"
        content = fake_profile.content(tmp_path)
        content["configurations"]["base"]["attach"] = {"url": url}
        profile = Profile.model_validate(content)
        assert f"No server answers at {url}" in found(profile, "base")
        assert main(["preflight", "--profile", fake_profile.write(tmp_path, content), "--configuration", "base"]) == 1


def test_a_program_that_is_not_there(tmp_path):
    content = fake_profile.content(tmp_path)
    content["engines"]["vllm"]["command"] = ["/nowhere/python"]
    assert "there is no program /nowhere/python" in found(Profile.model_validate(content), "base")


def test_one_port_for_two_servers_that_are_alive_at_once(tmp_path):
    content = fake_profile.content(tmp_path)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    content["engines"]["vllm"]["port"] = port
    profile = Profile.model_validate(content)
    assert f"base is alive at the same time and has the same port {port}" in found(profile, "drafting")
    assert "same port" not in found(profile, "base")
    content["hardware"]["servers_at_once"] = 1
    assert "same port" not in found(Profile.model_validate(content), "drafting")


def test_nothing_to_compare_with(tmp_path):
    content = fake_profile.content(tmp_path)
    del content["configurations"]["base"]
    assert "no configuration of vllm serves without drafting" in found(Profile.model_validate(content), "drafting")


def test_prompts_that_are_not_there_or_do_not_fit(tmp_path):
    content = fake_profile.content(tmp_path)
    content["workload"]["prompt_sets"] = ["chat", "nobody"]
    told = list(workload.check(Profile.model_validate(content)))
    assert [f.level for f in told] == ["warning", "blocker"], "64 tokens of context hold no prompt and its answer"
    assert "not fit into context_length 64" in told[0].text and "'nobody'" in told[1].text
    content["workload"]["prompt_sets"], content["target"]["context_length"] = ["chat"], 4096
    assert not list(workload.check(Profile.model_validate(content)))


def test_a_reference_without_a_folder(file, tmp_path):
    profile = toy(tmp_path, models={"path": str(file)}, method="ngram", gates={"equal_to_reference_floor": 0.5})
    assert "`equal_to_reference_floor` needs the target as a Hugging Face folder" in found(profile, "workload")


def test_a_drafter_that_cannot_be_made_here(model, tmp_path):
    profile = toy(tmp_path, models={"path": str(model)}, drafter={"made": "untrained"}, engine="vllm")
    assert "drafter own is made from a packaged target" in found(profile, "drafting")


def test_a_damaged_ledger_and_a_run_that_is_going_on(tmp_path):
    profile, runs = Profile.model_validate(fake_profile.content(tmp_path)), tmp_path / "runs"
    assert not found(profile, "runs", runs=runs) and not runs.exists(), "nothing is made"
    (runs / "fake" / "base").mkdir(parents=True)
    (runs / "fake" / "base" / "cells.jsonl").write_text("{")
    assert "base/cells.jsonl, line 1 is not JSON" in found(profile, "runs", runs=runs)
    (runs / "fake" / "base" / "cells.jsonl").write_text("")
    with locks.alone(runs / "fake"):
        assert "another run is measuring into" in found(profile, "runs", runs=runs)
    assert not found(profile, "runs", runs=runs)


@pytest.mark.parametrize(
    ("precision", "bits"), [("BF16", 16), ("float32", 32), ("Q4_K_M", 4), ("fp8", 8), ("INT4", 4), ("gptq", 16)]
)
def test_memory_goes_by_the_form_that_is_served(file, model, tmp_path, precision, bits):
    assert machine.bits(precision) == bits
    gib = 2**30
    forms = {"path": str(model), "bytes_on_disk": gib, "precision": precision}
    forms |= {"gguf": {"path": str(file), "precision": "Q4_K_M", "bytes_on_disk": gib // 4}}
    assert machine.served_gib(toy(tmp_path, models=forms, method="ngram"), "base") == pytest.approx(0.25 * machine.ROOM)
    content = toy(tmp_path, models=forms, engine="vllm", method="ngram").model_dump()
    content["engines"]["vllm"]["flags"] = {"dtype": "float32"}
    found = machine.served_gib(Profile.model_validate(content), "base")
    assert found == pytest.approx(32 / bits * machine.ROOM)


def test_a_profile_outside_the_folder_is_known_by_its_name_afterwards(tmp_path, monkeypatch):
    path = fake_profile.write(tmp_path, fake_profile.content(tmp_path))
    assert profiles_load.load(path).name == "fake"
    assert profiles_load.argument("fake") == path, "hints name what can be typed"
    assert profiles_load.load_if_known("fake") == profiles_load.load(path)
    (tmp_path / "fake.yaml").unlink()
    assert profiles_load.argument("fake") == "fake" and profiles_load.load_if_known("fake") is None
    monkeypatch.setattr(paths, "LOCAL_PROFILES", tmp_path)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(fake_profile.content(tmp_path) | {"name": "mine"}))
    assert profiles_load.load("mine").name == "mine" and profiles_load.load_if_known("mine") is not None
