"""Which configuration `make serve` starts: by use and workload, and where the workloads disagree."""

import json
from pathlib import Path

import pytest
import synthetic_runs
from canned_server import canned

from runners.__main__ import parse
from runners.analyse.verdict import store
from runners.analyse.verdict.to_serve import to_serve
from runners.commands import serve_winner
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load

PROFILE = "lab-cpu"
METHODS = {"vllm-base": ("none", None), "vllm-ngram": ("ngram", 5), "llamacpp-ngram": ("ngram", 8)}


def contender(name):
    method, k = METHODS.get(name, ("none", None))
    speeds = dict.fromkeys(("value", "end_to_end", "decode"), 10.0)
    own = {"configuration": name, "engine": "vllm", "method": method, "k": k, "precision": "", "concurrency": 1}
    return own | speeds | {"to_reference": None}


def answer(workload, serve, *also, use="throughput", mix=None):
    among = [contender(name) for name in (serve, *also) if name]
    none = {"use": use, "workload": workload, "mix": mix, "serve": serve, "among": among, "engines": []}
    if serve is None:
        return none
    beside = {"reason": "", "clear": None, "runner_up": None, "ratio": None, "base": None, "over_base": None}
    return among[0] | none | beside


def verdict(*answers):
    more = {"points": 0, "open": 0, "unknown": 0, "decidable": 0, "minutes": None}
    rest = {"margin": 0.03, "unit": "starts", "text": [], "more": more, "not_measured": []}
    return {"schema_version": store.SCHEMA_VERSION, "answers": list(answers), "points": []} | rest


def write(root: Path, found: dict) -> Path:
    (root / PROFILE).mkdir(parents=True, exist_ok=True)
    (root / PROFILE / "verdict.json").write_text(json.dumps(found))
    return root


def test_the_answer_of_a_workload_is_followed():
    found = verdict(answer("chat", "vllm-base"), answer("edit", "vllm-ngram"))
    assert to_serve(found, "throughput", "edit") == ("vllm-ngram", "")
    with pytest.raises(UserError, match="has no workload `code`; it has: chat, edit"):
        to_serve(found, "throughput", "code")
    assert to_serve(found, "single_stream", "edit") is None


def test_workloads_that_agree_need_no_words():
    assert to_serve(verdict(answer("chat", "vllm-base"), answer("edit", "vllm-base")), "throughput") == (
        "vllm-base",
        "",
    )


@pytest.mark.parametrize(
    ("answers", "name", "said"),
    [
        # the faster one on edit is not clearly behind on chat
        ([answer("chat", "vllm-base", "vllm-ngram"), answer("edit", "vllm-ngram")], "vllm-ngram", "in none of them"),
        # each is behind on the other: the simpler one
        ([answer("chat", "vllm-base"), answer("edit", "vllm-ngram")], "vllm-base", "right for 1 of 2 (chat)"),
        (
            [answer("a", "vllm-base"), answer("b", "vllm-ngram"), answer("c", "llamacpp-ngram", "vllm-ngram")],
            "vllm-ngram",
            "right for 2 of 3 (b, c)",
        ),
    ],
)
def test_workloads_that_disagree_get_what_is_right_for_most_and_a_sentence(answers, name, said):
    chosen, why = to_serve(verdict(*answers), "throughput")
    assert chosen == name and said in why
    assert why.startswith("The workloads disagree (") and why.count(". ") == 0 and "WORKLOAD=NAME" in why
    assert all(f"{a['workload']}: {a['serve']}" in why for a in answers)


def test_a_mix_of_the_profile_decides():
    found = verdict(
        answer("chat", "vllm-base"),
        answer("edit", "vllm-ngram"),
        answer("mix", "vllm-ngram", mix={"chat": 0.2, "edit": 0.8}),
    )
    assert to_serve(found, "throughput")[0] == to_serve(found, "throughput", "mix")[0] == "vllm-ngram"


def test_own_runs_come_before_the_published_ones(tmp_path, monkeypatch):
    own = write(tmp_path / "own", verdict(answer("chat", "vllm-ngram"), answer("chat", None, use="goodput")))
    published = write(tmp_path / "published", verdict(answer("chat", "vllm-base", use="goodput")))
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", published)
    profile = load(PROFILE)
    assert serve_winner.chosen_by_verdict(profile, own, "throughput") == ("vllm-ngram", "")
    assert serve_winner.chosen_by_verdict(profile, own, "goodput") == ("vllm-base", "")
    with pytest.raises(UserError, match="no verdict for profile lab-cpu and single stream on chat yet; run `make"):
        serve_winner.chosen_by_verdict(profile, own, "single_stream", "chat")


def test_the_command_says_why_before_it_starts(tmp_path, monkeypatch, capsys):
    own = write(tmp_path, verdict(answer("chat", "vllm-base"), answer("edit", "vllm-ngram")))
    started = []
    monkeypatch.setattr(serve_winner, "serve", lambda profile, name, port: started.append(name) or 0)
    for more in ([], ["--workload", "edit"], ["--configuration", "llamacpp-base"]):
        args, _ = parse("serve", ["--profile", PROFILE, "--runs", str(own), *more])
        assert serve_winner.main(args) == 0
    assert started == ["vllm-base", "vllm-ngram", "llamacpp-base"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("the verdict for many requests at once: vllm-base. The workloads disagree (chat: ")
    assert said[1:] == ["the verdict for many requests at once: vllm-ngram."]


@pytest.mark.slow  # a published verdict of an earlier version is decided again
def test_the_published_runs_say_what_to_serve():
    name, _ = serve_winner.chosen_by_verdict(load(PROFILE), paths.PUBLISHED_RUNS, "throughput", "chat")
    assert name in load(PROFILE).configurations


def test_a_server_that_runs_already_is_neither_started_nor_stopped(capsys):
    content = load(PROFILE).model_dump()
    with canned({"/health": "", "/v1/models": {"data": []}}) as url:
        content["configurations"]["vllm-base"]["attach"] = {"url": url}
        profile = type(load(PROFILE)).model_validate(content)
        assert serve_winner.serve(profile, "vllm-base", None) == 0
        said = capsys.readouterr().out
        assert said == f"vllm-base runs already at {url}/v1: nothing is started here, and nothing is stopped\n"
        with pytest.raises(UserError, match="is not ours to start: leave --port out"):
            serve_winner.serve(profile, "vllm-base", 8000)
    with pytest.raises(UserError, match="No server answers"):
        serve_winner.serve(profile, "vllm-base", None)


def test_without_a_stored_verdict_the_ledgers_decide(tmp_path, monkeypatch):
    own = synthetic_runs.write(tmp_path / "own", repeats=3, prompts=8)
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", tmp_path / "nothing")
    name, _ = serve_winner.chosen_by_verdict(load(PROFILE), own, "throughput", "chat")
    assert name in synthetic_runs.CONFIGURATIONS
    with pytest.raises(UserError, match="There is no verdict for profile lab-cpu"):
        serve_winner.chosen_by_verdict(load(PROFILE), tmp_path / "empty", "throughput")
