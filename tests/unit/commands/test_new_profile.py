"""A profile written for this machine parses, runs as it is written and says what to check."""

import re

import pytest
import tiny_models

from runners.commands import found_engines, found_models, new_profile, profile_text
from runners.commands.preflight import command_line
from runners.commands.profile_plan import Wanted
from runners.core import gpus, paths
from runners.core.errors import UserError
from runners.engines import environments
from runners.engines.registry import all_engines
from runners.profiles.load import load
from runners.serve.planned_start import planned_start

CARDS = [gpus.Gpu("RTX PRO 6000", 96.0, 95.0, "580.1")] * 2


@pytest.fixture
def profiles(tmp_path, monkeypatch):
    """A machine without GPUs and without any engine; its profiles go to a folder of their own."""
    monkeypatch.setattr(paths, "PROFILES", tmp_path)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(gpus, "found", lambda: None)
    monkeypatch.setattr(environments, "installed_version", lambda python, kind: None)
    monkeypatch.setattr(environments, "ready", lambda name: False)
    return tmp_path


@pytest.fixture
def holds(monkeypatch):
    """Say which interpreter holds which engine in which version."""

    def put(**versions):
        known = {("py", kind): version for kind, version in versions.items()}
        monkeypatch.setattr(environments, "installed_version", lambda python, kind: known.get((python, kind)))

    return put


@pytest.mark.parametrize("found", [None, CARDS])
def test_a_new_profile_parses_and_says_what_to_check(profiles, monkeypatch, found):
    monkeypatch.setattr(gpus, "found", lambda: found)
    drafter = tiny_models.folder(profiles / "drafter", tiny_models.DRAFTER)
    new_profile.write("my-box", drafter=[str(drafter)])
    profile, text = load("my-box"), (profiles / "my-box.yaml").read_text()
    assert profile.hardware.gpus == len(found or []) and "# CHECK" in text
    assert profile.hardware.servers_at_once == 1
    quick, full = profile.preset("quick"), profile.preset("full")
    assert (quick.rounds, full.rounds) == ((1, 6) if found else (3, 6)), "one start decides nothing: full pays for six"
    assert all(2 <= n <= max(2, c) for c, n in full.requests.items()) and set(full.repeats.values()) == {1, 2}
    assert {c.method for c in profile.configurations.values()} == {"none", "ngram", "eagle3"}
    with pytest.raises(UserError, match="exists already"):
        new_profile.write("my-box")


@pytest.mark.parametrize("name, target, said", [("../x", [], "must hold"), ("box", ["/nowhere"], "no config.json")])
def test_a_profile_that_cannot_be_written_leaves_nothing(profiles, name, target, said):
    with pytest.raises(UserError, match=said):
        new_profile.write(name, target)
    assert not list(profiles.glob("*.yaml"))


def test_a_folder_fills_the_target_in_and_names_no_port(profiles):
    new_profile.write("box", [str(tiny_models.folder(profiles / "my-model"))])
    profile = load("box")
    target = profile.target
    assert (target.name, target.layers, target.hidden_size, target.vocab_size) == ("my-model", 4, 64, 99)
    assert target.precision == "BF16" and target.context_length == 1024 and target.bytes_on_disk > 400
    assert {spec.port for spec in profile.engines.values()} == {None}, "two servers that are alive at once need two"


def test_vllm_on_a_cpu_gets_what_its_text_needs(profiles, holds, capsys):
    holds(vllm="0.32.0")
    new_profile.write("box", [str(tiny_models.folder(profiles / "my-model"))], pythons=["py"])
    spec = load("box").engines["vllm"]
    assert (spec.python, spec.version) == ("py", "0.32.0")
    assert spec.flags == {"dtype": "float32", "enforce-eager": True} and int(spec.env["VLLM_CPU_KVCACHE_SPACE"]) >= 1
    assert "CHECK" not in "".join((profiles / "box.yaml").read_text().splitlines()[1:]).replace("# CHECK: 2", "")
    assert "is written for vllm 0.32.0 (py)" in capsys.readouterr().out


def test_on_gpus_a_server_is_spread_over_all_of_them(profiles, holds, monkeypatch):
    monkeypatch.setattr(gpus, "found", lambda: CARDS)
    holds(vllm="0.32.0", sglang="0.5.23", llamacpp="2026.10.11549")
    model = tiny_models.folder(profiles / "m")
    tiny_models.gguf(model / "m.gguf")
    new_profile.write("box", [str(model)], pythons=["py"])
    profile = load("box")
    assert {kind: spec.flags for kind, spec in profile.engines.items()} | {"llamacpp": None} == {
        **{"vllm": {"tensor-parallel-size": 2}, "sglang": {"tp-size": 2}, "llamacpp": None}
    }
    assert profile.configuration("vllm-base").max_running_requests == 128
    few = profile.configuration("llamacpp-base")
    assert few.max_running_requests == 16 and few.concurrencies == [1, 4, 16]


def test_both_forms_of_one_target_share_a_profile(profiles, holds):
    holds(vllm="0.32.0", llamacpp="2026.10.11549")
    folder, file = tiny_models.folder(profiles / "m"), tiny_models.gguf(profiles / "files" / "m.Q4_K_M.gguf")
    new_profile.write("box", [str(folder), str(file)], pythons=["py"])
    profile = load("box")
    assert profile.target.gguf is not None and profile.target.gguf.bytes_on_disk == file.stat().st_size
    for name, flag, place, precision in (
        ("vllm-base", "--model", folder, "BF16"),
        ("llamacpp-ngram", "--model", file, "Q4_K_M"),
    ):
        argv = [str(word) for word in planned_start(profile, name).command().argv]
        assert argv[argv.index(flag) + 1] == str(place) and profile.precision_of(name) == precision


def test_a_gguf_file_alone_is_served_by_llamacpp(profiles, holds, capsys):
    holds(llamacpp="2026.10.11549", vllm="0.32.0")
    file = tiny_models.gguf(profiles / "m.gguf")
    new_profile.write("box", [str(file)], pythons=["py"])
    profile = load("box")
    assert list(profile.configurations) == ["llamacpp-base", "llamacpp-ngram"]
    assert (profile.target.name, profile.target.precision, profile.target.path) == ("Toy 1M", "Q4_K_M", str(file))
    assert profile.engines["llamacpp"].flags == {"threads": found_engines.cores()}
    assert "vllm is here too and serves a Hugging Face folder" in capsys.readouterr().out
    lines = {name: command_line.words(profile, name) for name in profile.configurations}
    spec = profile.engines["llamacpp"]
    assert command_line.parse(all_engines()["llamacpp"], spec, lines) == dict.fromkeys(lines, "")


def test_without_any_engine_an_environment_of_ours_is_taken(profiles):
    new_profile.write("box", [str(tiny_models.gguf(profiles / "m.gguf"))])
    spec = load("box").engines["llamacpp"]
    assert spec.environment == "llamacpp" and spec.version == environments.pins("llamacpp")["xllamacpp"]


@pytest.mark.parametrize(
    ("pythons", "engines", "said"),
    [
        (["elsewhere"], None, "--python elsewhere holds none of llamacpp, vllm; give the one that runs the engine"),
        (None, ["sglang"], "--engine sglang must be one of llamacpp, vllm on a machine without GPUs"),
        (None, ["tensorrt"], "--engine tensorrt must be one of"),
        (None, ["vllm"], "vllm needs the target as a Hugging Face folder; give that form too"),
    ],
)
def test_an_engine_that_cannot_be_is_said_and_not_ignored(profiles, pythons, engines, said):
    with pytest.raises(UserError, match=re.escape(said)):
        new_profile.write("box", [str(tiny_models.gguf(profiles / "m.gguf"))], pythons=pythons, engines=engines)


@pytest.mark.parametrize(
    ("place", "config", "name"),
    [
        ("models--meta-llama--Llama-3.2-1B/snapshots/0a1b2c", {}, "Llama-3.2-1B"),
        ("plain", {}, "plain"),
        ("hf-fp32-0a1b2c", {"gguf": True}, "Toy 1M"),
    ],
)
def test_a_hash_in_a_cache_is_no_title(tmp_path, place, config, name):
    folder = tiny_models.folder(tmp_path / place)
    paths_given = [str(folder)]
    if config:
        paths_given.append(str(tiny_models.gguf(tmp_path / "m.gguf")))
    assert found_models.target(paths_given).name == name


def test_two_models_of_one_form_are_refused(tmp_path):
    one, two = (tiny_models.gguf(tmp_path / "files" / f"{n}.gguf") for n in "ab")
    with pytest.raises(UserError, match="a.gguf and .*b.gguf are two GGUF files"):
        found_models.target([str(one), str(two)])
    with pytest.raises(UserError, match=r"holds several GGUF files \(a.gguf, b.gguf\); name one of them"):
        found_models.target([str(tmp_path / "files")])


@pytest.mark.parametrize(
    ("config", "method"),
    [
        (tiny_models.DRAFTER, "eagle3"),
        ({"speculators_model_type": "eagle3", "architectures": ["Eagle3Speculator"]}, "eagle3"),
        (tiny_models.CONFIG, "draft_model"),
        ({"architectures": ["EagleLlamaForCausalLM"]}, "eagle"),
        ({"architectures": ["DFlashDraftModel"]}, "dflash"),
    ],
)
def test_a_drafter_is_used_for_what_it_is(tmp_path, config, method):
    assert found_models.drafter([str(tiny_models.folder(tmp_path / "d", config))]).method == method


def test_requests_stay_within_the_drafters_limit_where_the_prompts_fit(profiles, holds, monkeypatch):
    monkeypatch.setattr(gpus, "found", lambda: CARDS)
    holds(sglang="0.5.23")
    model = tiny_models.folder(profiles / "m", tiny_models.CONFIG | {"max_position_embeddings": 131072})

    def write(name, limit):
        drafter = tiny_models.folder(profiles / name, tiny_models.DRAFTER | {"max_position_embeddings": limit})
        new_profile.write(name, [str(model)], drafter=[str(drafter)], pythons=["py"])
        return load(name)

    fits, short = write("fits", 2048), write("short", 256)
    assert fits.target.context_length == 2048 and not fits.engines["sglang"].env
    assert short.target.context_length == 8192
    assert short.engines["sglang"].env == {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}, "or it would not start"


def test_each_k_is_a_configuration(profiles, holds):
    holds(vllm="0.32.0")
    model, drafter = tiny_models.folder(profiles / "m"), tiny_models.folder(profiles / "d", tiny_models.DRAFTER)
    wanted = Wanted(["ngram", "eagle3"], ks=[1, 3], levels=[4, 1], minutes=10)
    plan = new_profile.look("box", [str(model)], [str(drafter)], ["py"], None, wanted)
    profile = new_profile.save(plan, profiles / "box.yaml")
    names = ["vllm-base", "vllm-ngram-k1", "vllm-ngram-k3", "vllm-eagle3-k1", "vllm-eagle3-k3"]
    assert list(profile.configurations) == names
    assert profile.configuration("vllm-eagle3-k3").k == 3 and profile.configuration("vllm-ngram-k1").drafter is None
    assert profile.workload.concurrencies == [1, 4] and profile.preset("quick").minutes == 10
    assert {c.max_running_requests for c in profile.configurations.values()} == {4}


def test_what_does_not_load_is_not_left_behind(profiles, holds):
    holds(vllm="0.32.0")
    model = tiny_models.folder(profiles / "m")
    plan = new_profile.look("box", [str(model)], pythons=["py"], wanted=Wanted(["eagle3"]))
    with pytest.raises(UserError, match="`method: eagle3` needs a `drafter`"):
        new_profile.save(plan, profiles / "box.yaml")
    assert not (profiles / "box.yaml").exists() and "eagle3" in profile_text.text(plan)
