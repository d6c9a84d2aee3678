"""Methods are open: any name that the engine drafts by, its spellings, flags that merge, and which one is the base."""

import json
from pathlib import Path

import pandas as pd
import pytest

from runners.analyse import results
from runners.core.errors import UserError
from runners.engines.engine import Files, Serving, merge
from runners.engines.registry import engine
from runners.profiles import load
from runners.profiles.methods import METHODS, method
from runners.profiles.profile import Profile
from runners.serve.command import command
from runners.serve.model_files import planned_files

BOX, LAB = "single-gpu", "lab-cpu"


def with_one(name="mine", profile=BOX, **fields):
    """The profile with one more configuration."""
    content = load.load(profile).model_dump()
    content["configurations"][name] = {"title": name, "max_running_requests": 8} | fields
    return Profile.model_validate(content)


def argv(profile, name="mine"):
    files = planned_files(profile, profile.configuration(name).drafter)
    return [str(word) for word in command(profile, name, files, 1).argv]


def value(words, flag):
    return words[words.index(flag) + 1]


@pytest.mark.parametrize(
    ("kind", "written", "known", "passed"),
    [
        *[("vllm", m, m, m) for m in ("ngram", "eagle", "eagle3", "draft_model", "mtp", "suffix", "dflash", "medusa")],
        ("sglang", "EAGLE", "eagle", "EAGLE"),
        ("sglang", "EAGLE3", "eagle3", "EAGLE3"),
        ("sglang", "Eagle3", "eagle3", "EAGLE3"),
        ("sglang", "eagle3", "eagle3", "EAGLE3"),
        ("sglang", "NEXTN", "mtp", "NEXTN"),
        ("sglang", "mtp", "mtp", "NEXTN"),
        ("sglang", "STANDALONE", "draft_model", "STANDALONE"),
        ("sglang", "NGRAM", "ngram", "NGRAM"),
        ("sglang", "DFLASH", "dflash", "DFLASH"),
        ("llamacpp", "draft-mtp", "mtp", "draft-mtp"),
        ("llamacpp", "draft-dflash", "dflash", "draft-dflash"),
        ("llamacpp", "draft-eagle3", "eagle3", "draft-eagle3"),
        ("llamacpp", "ngram-mod", "ngram-mod", "ngram-mod"),
        ("llamacpp", "ngram-cache", "ngram-cache", "ngram-cache"),
        ("llamacpp", "brand-new", "brand-new", "brand-new"),
    ],
)
def test_a_method_is_known_by_one_word_and_passed_as_the_engine_writes_it(kind, written, known, passed):
    fields = {"engine": kind, "method": written}
    fields |= {"k": 3} if known in engine(kind).needs_k else {}
    profile = with_one(profile=LAB if kind == "llamacpp" else BOX, **fields, **_drafter(kind, known))
    assert profile.configuration("mine").method == known and profile.drafts("mine")
    words = argv(profile)
    flag = {"vllm": "--speculative-config", "sglang": "--speculative-algorithm", "llamacpp": "--spec-type"}[kind]
    found = value(words, flag)
    assert (json.loads(found)["method"] if kind == "vllm" else found) == passed
    assert "None" not in " ".join(words)
    assert Profile.model_validate(profile.model_dump()) == profile, "a profile written back reads the same"


def _drafter(kind, known):
    if method(known).drafter != "needed":
        return {}
    return {"drafter": "aligned" if kind == "llamacpp" else "eagle3-llama"}


def test_flags_merge_into_the_speculative_config():
    flags = {"speculative-config": {"prompt_lookup_max": 8, "more": {"a": 1}}}
    found = json.loads(value(argv(with_one(engine="vllm", method="ngram", k=5, flags=flags)), "--speculative-config"))
    assert found == {
        "method": "ngram",
        "num_speculative_tokens": 5,
        "prompt_lookup_max": 8,
        "prompt_lookup_min": 2,
        "more": {"a": 1},
    }
    as_text = {"speculative-config": '{"prompt_lookup_max": 8}'}
    words = argv(with_one(engine="vllm", method="ngram", k=5, flags=as_text))
    assert json.loads(value(words, "--speculative-config"))["prompt_lookup_max"] == 8


def speculative_config(**fields):
    return json.loads(value(argv(with_one(engine="vllm", **fields)), "--speculative-config"))


def test_flags_merge_into_the_speculative_config_however_they_are_written():
    expected = {"method": "mtp", "num_speculative_tokens": 2, "draft_tensor_parallel_size": 1}
    for flags in (
        {"speculative-config": {"draft_tensor_parallel_size": 1}},
        {"speculative_config": {"draft_tensor_parallel_size": 1}},
        {"speculative-config.draft_tensor_parallel_size": 1},
        {"speculative-config": '{"draft_tensor_parallel_size": 1}'},
    ):
        assert speculative_config(method="mtp", k=2, flags=flags) == expected, flags


def test_an_engines_flags_and_a_configurations_merge_into_one_mapping():
    content = load.load(BOX).model_dump()
    content["engines"]["vllm"]["flags"] = {"speculative-config": '{"method": "mtp", "a": {"b": 1}}'}
    content["configurations"] = {
        "mine": content["configurations"]["vllm-base"] | {"flags": {"speculative_config": {"a": {"c": 2}}}},
        "vllm-base": content["configurations"]["vllm-base"] | {"flags": {"speculative-config": False}},
    }
    profile = Profile.model_validate(content)
    assert profile.method_of("mine") == "mtp" and profile.base_of("mine") == "vllm-base"
    assert json.loads(value(argv(profile), "--speculative-config")) == {"method": "mtp", "a": {"b": 1, "c": 2}}
    assert "--speculative-config" not in argv(profile, "vllm-base")


def test_mtp_is_a_method_that_drafts_and_is_never_the_base():
    for kind in ("vllm", "sglang", "llamacpp"):
        profile = with_one("a-mtp", profile=LAB if kind == "llamacpp" else BOX, engine=kind, method="mtp", k=1)
        assert profile.drafts("a-mtp") and profile.base_of("a-mtp") == f"{kind}-base"
    assert speculative_config(method="mtp", k=1) == {"method": "mtp", "num_speculative_tokens": 1}


@pytest.mark.parametrize(
    ("kind", "path", "sentence"),
    [
        ("llamacpp", "/models/drafter", "llama.cpp takes a drafter as a GGUF file and drafter is a Hugging Face fold"),
        ("vllm", "/models/drafter.gguf", "vLLM takes a drafter as a Hugging Face folder and drafter.gguf is a GGUF"),
        ("sglang", "/models/drafter.gguf", "SGLang takes a drafter as a Hugging Face folder"),
    ],
)
def test_a_drafter_that_an_engine_cannot_serve_is_never_left_out_in_silence(kind, path, sentence):
    path = Path(path)
    drafter = {"drafter_gguf": path} if path.suffix else {"drafter_folder": path}
    files = Files(gguf=Path("/models/t.gguf"), folder=Path("/models/t"), **drafter)
    asked = Serving("t", 512, 4, files, "127.0.0.1", 1, method="eagle3", k=3)
    with pytest.raises(UserError, match=sentence):
        engine(kind).arguments(asked)
    plain = Serving("t", 512, 4, files, "127.0.0.1", 1)
    assert not any("draft" in flag or "spec" in flag for flag in engine(kind).arguments(plain))


def test_mappings_merge_deeply_and_anything_else_replaces():
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9}}) == {"a": {"b": 9, "c": 2}, "d": 3}
    assert merge(None, {"a": 1}) == {"a": 1} and merge({"a": 1}, False) is False and merge({"a": 1}, "not JSON")
    assert merge('{"a": {"b": 1}}', {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}


def test_a_tree_is_asked_for_by_flags_and_never_taken_for_a_chain():
    flags = {"speculative-eagle-topk": 4, "speculative-num-draft-tokens": 16}
    fields = {"engine": "sglang", "method": "EAGLE3", "k": 5, "drafter": "eagle3-llama"}
    profile = with_one(**fields, flags=flags)
    words = argv(profile)
    assert value(words, "--speculative-eagle-topk") == "4" and value(words, "--speculative-num-steps") == "5"
    assert profile.method_of("mine") == "eagle3-tree" and method("eagle3-tree").tree
    assert not method("eagle3-tree").chain
    assert with_one(**fields).method_of("mine") == "eagle3"


def test_without_k_the_engine_takes_its_own():
    words = argv(with_one(engine="sglang", method="eagle3", drafter="eagle3-llama"))
    assert "--speculative-num-steps" not in words and "--speculative-draft-model-path" in words


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"method": "eagle3", "drafter": "eagle3-llama"}, "`k` goes with `method: eagle3`: vLLM has no default"),
        ({"method": "eagle3", "k": 3}, "`method: eagle3` needs a `drafter`"),
        ({"method": "ngram", "k": 3, "drafter": "small"}, "`method: ngram` takes no `drafter`"),
        ({"k": 3}, "`k` goes with a `method` that drafts"),
        ({"forced_accept_length": 2.0}, "`forced_accept_length` needs a `method` that drafts"),
        ({"method": "ngram", "k": 3, "forced_accept_length": 5.0}, "must be between 1 and k \\+ 1"),
        ({"method": "ngram", "k": 3, "base": True}, "`base: true` is for one that does not draft"),
        ({"method": "ngram", "k": 3, "base": "sglang-base"}, "must be a configuration of the same engine"),
        ({"method": "ngram", "k": 3, "base": "nothing"}, "must be a configuration of the same engine"),
        (
            {"method": "ngram", "k": 3, "flags": {"speculative_config": {"method": "mtp"}}},
            "`method: ngram` and the method `mtp` of `flags` disagree; leave one out",
        ),
        ({}, "configurations mine, vllm-base of vllm do not draft: set `base: true` on exactly one of them"),
    ],
)
def test_what_does_not_fit_together_is_said_in_one_sentence(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        with_one(engine="vllm", **fields)


BY_FLAGS = [
    ("vllm", {"speculative-config": {"method": "mtp", "num_speculative_tokens": 1}}, "mtp"),
    ("vllm", {"speculative-config": '{"method": "suffix"}'}, "suffix"),
    ("vllm", {"speculative-config": {"model": "/m", "num_speculative_tokens": 2}}, "unnamed"),
    ("sglang", {"speculative-algorithm": "NEXTN", "speculative-eagle-topk": 1}, "mtp"),
    ("vllm", {"spec-method": "mtp", "spec-tokens": 1}, "mtp"),
    ("vllm", {"speculative_config": {"method": "mtp"}}, "mtp"),
    ("vllm", {"speculative-config.method": "mtp", "speculative_config.num_speculative_tokens": 1}, "mtp"),
    ("vllm", {"spec_method": "mtp"}, "mtp"),
    ("llamacpp", {"spec-type": "draft-mtp"}, "mtp"),
    ("llamacpp", {"spec_type": "ngram-mod"}, "ngram-mod"),
    ("sglang", {"speculative-algorithm": "EAGLE"}, "eagle-tree"),
]


@pytest.mark.parametrize(("kind", "flags", "named"), BY_FLAGS)
def test_a_configuration_that_drafts_through_its_flags_is_never_the_base(kind, flags, named):
    box = LAB if kind == "llamacpp" else BOX
    profile = with_one("a-first-by-name", profile=box, engine=kind, flags=flags)
    assert profile.method_of("a-first-by-name") == named and profile.drafts("a-first-by-name")
    assert profile.base_of(f"{kind}-ngram") == f"{kind}-base" == profile.base_of("a-first-by-name")


def test_the_base_may_be_marked_or_named():
    content = load.load(BOX).model_dump()
    content["configurations"]["a-other"] = {"engine": "vllm", "title": "other", "max_running_requests": 8}
    content["configurations"]["vllm-base"]["base"] = True
    content["configurations"]["vllm-ngram"]["base"] = "a-other"
    profile = Profile.model_validate(content)
    bases = {name: profile.base_of(name) for name in ("vllm-eagle3", "vllm-ngram", "a-other", "sglang-ngram")}
    assert bases == {
        "vllm-eagle3": "vllm-base",
        "vllm-ngram": "a-other",
        "a-other": "vllm-base",
        "sglang-ngram": "sglang-base",
    }


def test_the_analysis_compares_with_the_profiles_base(monkeypatch):
    content = load.load(BOX).model_dump()
    content["configurations"]["a-other"] = {"engine": "vllm", "title": "other", "max_running_requests": 8}
    content["configurations"]["vllm-base"]["base"] = True
    content["configurations"]["vllm-ngram"]["base"] = "a-other"
    monkeypatch.setattr(results, "_profile", lambda name: Profile.model_validate(content))
    rows = [("a-other", "none"), ("vllm-base", "none"), ("vllm-ngram", "ngram"), ("vllm-eagle3", "eagle3")]
    frame = pd.DataFrame([{"profile": BOX, "engine": "vllm", "configuration": c, "method": m} for c, m in rows])
    assert results.base_of(frame, "vllm") == "vllm-base"
    assert results.base_of(frame, "vllm", "vllm-ngram") == "a-other"
    assert results.base_of(frame[frame.configuration != "vllm-base"], "vllm") == "a-other"
    assert results.base_of(frame, "sglang") is None


def test_llamacpp_says_where_it_takes_no_k():
    with pytest.raises(UserError, match="takes no `k` for ngram-mod"):
        argv(with_one(profile=LAB, engine="llamacpp", method="ngram-mod", k=4))


def test_what_is_known_of_a_method():
    assert all(m.every_step for m in METHODS.values() if m.chain), "a chain drafts in every step"
    unknown = method("brand-new")
    assert not unknown.chain and unknown.every_step is None and not unknown.tree and unknown.drafter == "optional"
