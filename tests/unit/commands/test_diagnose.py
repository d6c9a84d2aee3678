"""`specverdict diagnose --target DIR --drafter DIR`, as it is typed: made-up folders, a log, a /metrics text."""

import json

import pytest
import small_models

from runners.__main__ import main
from runners.drafter import replay_folders

LOG = (
    "INFO 03-11 06:16:52 [metrics.py:100] SpecDecoding metrics: Mean acceptance length: 1.00, Accepted throughput: "
    "0.00 tokens/s, Drafted throughput: 20.00 tokens/s, Accepted: 0 tokens, Drafted: 300 tokens, Per-position "
    "acceptance rate: 0.000, 0.000, 0.000, Avg Draft acceptance rate: 0.0%\n"
)
METRICS = """\
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 90.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 60.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 30.0
"""


@pytest.fixture
def target(tmp_path):
    return small_models.target(tmp_path / "target", layers=30)


@pytest.fixture
def drafter(tmp_path):
    return small_models.head(tmp_path / "head")


def diagnose(*words):
    return main(["diagnose", *map(str, words)])


def test_a_whole_head_has_no_fault_and_says_why_it_was_not_replayed(target, drafter, capsys):
    assert diagnose("--target", target, "--drafter", drafter) == 0
    printed = capsys.readouterr().out
    for words in (
        "head: EAGLE-3 head, method eagle3, for target target",
        "engines take the inputs of layers [2, 15, 27]",
        "not measured here",
        "not replayed: the target's folder has no tokenizer.json",
        "none found",
    ):
        assert words in printed


def test_a_log_is_evidence(target, drafter, tmp_path, capsys):
    (tmp_path / "a.log").write_text(LOG)
    assert diagnose("--target", target, "--drafter", drafter, "--no-replay", "--log", tmp_path / "a.log") == 0
    printed = capsys.readouterr().out
    assert "accept length 1.000; survival 0.000, 0.000, 0.000 (1 acceptance line of the log)" in printed
    assert "warning  the drafter contributes nothing: accept length 1.000" in printed
    assert "not replayed: it was not asked for" in printed
    assert "1. LM head missing, drawn at random by the engine" in printed
    assert "- measured: accept length 1.000" in printed


def test_two_snapshots_of_metrics_are_subtracted(target, drafter, tmp_path, capsys):
    (tmp_path / "before.prom").write_text(METRICS)
    later = METRICS.replace(" 100.0", " 200.0").replace(" 300.0", " 600.0").replace(" 90.0", " 240.0")
    (tmp_path / "later.prom").write_text(later.replace(" 60.0", " 150.0").replace(" 30.0", " 90.0"))
    files = ["--metrics", tmp_path / "before.prom", "--metrics", tmp_path / "later.prom"]
    assert diagnose("--target", target, "--drafter", drafter, "--no-replay", *files[:2]) == 0
    assert "accept length 1.900 over 100 steps; survival 0.600, 0.300" in capsys.readouterr().out
    assert diagnose("--target", target, "--drafter", drafter, "--no-replay", *files) == 0
    assert "accept length 2.500 over 100 steps; survival 0.900, 0.600" in capsys.readouterr().out


def test_a_server_that_was_started_with_another_method_is_said(target, drafter, tmp_path, capsys):
    started = "INFO 03-11 06:16:50 [core.py:69] speculative_config=SpeculativeConfig(method='eagle', num_spec_tokens=3)"
    (tmp_path / "a.log").write_text(started + "\n" + LOG)
    assert diagnose("--target", target, "--drafter", drafter, "--no-replay", "--log", tmp_path / "a.log") == 0
    printed = capsys.readouterr().out
    assert "started with method eagle, but by its files the drafter is: EAGLE-3 head" in printed
    assert "fix: start it with the method eagle3" in printed


def test_a_text_without_acceptance_says_so(target, drafter, tmp_path, capsys):
    (tmp_path / "m.prom").write_text('vllm:num_requests_running{engine="0",model_name="m"} 3.0\n')
    assert diagnose("--target", target, "--drafter", drafter, "--no-replay", "--metrics", tmp_path / "m.prom") == 0
    assert "these texts hold no acceptance of a drafter" in capsys.readouterr().out


def test_what_is_wrong_in_the_files_comes_first(target, tmp_path, capsys):
    tensors = {n: v for n, v in small_models.head_tensors().items() if n != "lm_head.weight"}
    head = small_models.head(tmp_path / "bare", {"rope_theta": 1e4}, tensors)
    assert diagnose("--target", target, "--drafter", head, "--no-replay", "--context-length", 512) == 0
    printed = capsys.readouterr().out
    assert printed.index("blocker  lm_head.weight is missing") < printed.index("warning  ")
    assert "limit is 128 positions, but requests may have 512" in printed
    assert "fix: export the drafter with its LM head" in printed


def test_replays_rank_the_faults(target, drafter, monkeypatch, capsys):
    found = {
        "as it is": {"fault": None, "accept_length": 1.2, "every_position": [1.2, 1.3, 1.1]},
        "states one layer earlier": {"fault": "boundary+1", "accept_length": 1.9, "every_position": [1.9, 2, 1.8]},
    }
    monkeypatch.setattr(replay_folders, "what_if", lambda *_: (found, ""))
    assert diagnose("--target", target, "--drafter", drafter) == 0
    printed = capsys.readouterr().out
    assert "1.900  states one layer earlier" in printed
    assert "1. aux states one layer too late (undoing it gains 0.70)" in printed
    assert diagnose("--target", target, "--drafter", drafter, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["what_if"]["as it is"] == 1.2 and told["likely"][0]["name"] == "boundary+1"


def test_a_target_alone_is_looked_at_for_mtp_layers(tmp_path, capsys):
    layer = small_models.layer("model.layers.4.", 8)
    own = small_models.target(tmp_path / "own", 4, {"num_nextn_predict_layers": 1}, layer)
    assert diagnose("--target", own) == 0
    printed = capsys.readouterr().out
    assert "own: MTP layers, method mtp" in printed and "9 tensors of MTP layers are there" in printed
    assert "not replayed: replay follows EAGLE-3 heads only" in printed
    lost = small_models.target(tmp_path / "lost", 4, {"num_nextn_predict_layers": 1})
    assert diagnose("--target", lost, "--drafter", lost) == 0
    assert "names 1 MTP layers, but no tensor of one is there" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "Give either --target DIR with --drafter DIR, or --configuration NAME"),
        (["--target", "{t}", "--configuration", "x"], "Give either --target DIR"),
        (["--configuration", "x", "--log", "a.log"], "go with --target"),
        (["--target", "{t}"], "has no MTP layers that could draft; give a drafter's folder with --drafter"),
        (["--target", "{t}/none", "--drafter", "{t}"], "There is no folder"),
        (["--target", "{t}/config.json", "--drafter", "{t}"], "must be a Hugging Face folder"),
        (["--target", "{t}", "--drafter", "model.gguf"], "--drafter must be a Hugging Face folder"),
        (["--target", "{t}", "--drafter", "{t}/.."], "a model is a folder with config.json"),
        (["--target", "{t}", "--drafter", "{d}", "--log", "nowhere.log"], "nowhere.log"),
    ],
)
def test_what_cannot_be_looked_at_is_one_sentence(target, drafter, words, said, capsys):
    filled = [w.format(t=target, d=drafter) for w in words]
    assert diagnose(*filled) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--k", "0"], ["--k", "x"], ["--k", "17"], ["--context-length", "0"]])
def test_numbers_out_of_range_are_refused(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        diagnose("--target", "t", *words)
    assert stopped.value.code == 2 and "must be" in capsys.readouterr().err
