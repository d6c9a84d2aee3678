"""`specverdict read` on texts a person may have: whose they are, what they say, and one sentence to act on."""

import argparse
import gzip
import json
import os
import subprocess
import sys

import jsonschema
import pytest

from runners.__main__ import parse
from runners.commands import read_log
from runners.commands.read_json import SCHEMA
from runners.core.errors import UserError
from runners.readers.records import Counters

SGLANG = """\
[2026-01-05 10:00:00 TP0] Load weight begin. avail mem=93.10 GB
[2026-01-05 10:07:30 TP0] Load weight end. elapsed=450.00 s, type=KimiK25ForConditionalGeneration, avail mem=21.00 GB
[2026-01-05 10:09:00] The server is fired up and ready to roll!
[2026-01-05 10:10:00 TP0] Decode batch. #running-req: 48, #token: 9000, token usage: 0.10, accept len: 1.00, accept rate: 0.25, cuda graph: True, gen throughput (token/s): 597.00, #queue-req: 80, 
[2026-01-05 10:10:10 TP0] Decode batch. #running-req: 48, #token: 9900, token usage: 0.11, accept len: 1.00, accept rate: 0.25, cuda graph: True, gen throughput (token/s): 598.00, #queue-req: 80, 
"""  # noqa: E501, W291 - the engine's own line
VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.7e+09
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 90.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 60.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 30.0
vllm:generation_tokens_total{engine="0",model_name="m"} 190.0
"""
LATER = VLLM.replace("} 300.0", "} 900.0").replace("} 100.0", "} 300.0").replace("} 90.0", "} 490.0")
LATER = LATER.replace("} 60.0", "} 260.0").replace("} 190.0", "} 790.0")
NGRAM = """\
llamacpp:spec_decode_num_drafts_total 27
llamacpp:spec_decode_num_draft_tokens_total 150
llamacpp:spec_decode_num_accepted_tokens_total 138
llamacpp:tokens_predicted_total 483
llamacpp:requests_processing 1
"""


def command(*words, **options):
    found = [sys.executable, "-m", "runners", "read", *map(str, words)]
    return subprocess.run(found, capture_output=True, text=True, **options)


def told(capsys, *words):
    """What the command prints for these words; its answer is the last line."""
    args, _ = parse("read", [str(w) for w in words])
    assert read_log.main(args) == 0
    return capsys.readouterr().out


def document(capsys, *words):
    """What it prints as JSON, checked against its own schema."""
    found = json.loads(told(capsys, *words, "--json"))
    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    return found


@pytest.fixture
def kept(tmp_path):
    """A function that writes texts into files: name -> content (and the file's time); returns the paths."""

    def write(**texts):
        paths = []
        for name, content in texts.items():
            content, at = content if isinstance(content, tuple) else (content, None)
            path = tmp_path / name.replace("__", ".")
            path.write_text(content)
            if at is not None:
                os.utime(path, (at, at))
            paths.append(path)
        return paths

    return write


@pytest.mark.slow
def test_a_log_tells_engine_phases_acceptance_and_requests(kept):
    (log,) = kept(server__log=SGLANG)
    done = command(log, "--num-draft-tokens", "4")
    assert done.returncode == 0, done.stderr
    assert "engine      sglang" in done.stdout and "phase       ready" in done.stdout
    assert "rate 0.25 as printed" in done.stdout and "0% recomputed" in done.stdout
    assert "48 running, 80 queued" in done.stdout and "outcome     served" in done.stdout
    (server,) = json.loads(command(log, "--json").stdout)["servers"]
    assert server["engine"] == "sglang" and len(server["texts"][0]["content"]["acceptance"]) == 2


def test_colours_of_a_terminal_hide_nothing(kept):
    plain, coloured = kept(plain=SGLANG, coloured=SGLANG.replace("Decode batch", "\x1b[32mDecode batch\x1b[0m"))
    one, two = read_log.read(plain), read_log.read(coloured)
    assert len(one.acceptance) == len(two.acceptance) == 2 and two.running_max == 48


def test_a_metrics_text_gives_counts_and_the_recomputed_length(kept, capsys):
    (text,) = kept(metrics=VLLM)
    found = read_log.read(text)
    assert isinstance(found, Counters) and (found.steps, found.accepted, found.running) == (100, 90, 3)
    out = told(capsys, text)
    assert "accept length 1.900" in out and "draft acceptance 30%" in out and "0.600, 0.300" in out


def test_a_server_info_tells_the_cap_in_force(kept, capsys):
    state = {"effective_max_running_requests_per_dp": 48, "avg_spec_accept_length": 1.5}
    info = {"version": "0.5.23", "speculative_num_draft_tokens": 4, "internal_states": [state, state]}
    (text,) = kept(server_info__json=json.dumps(info, indent=1))
    out = told(capsys, text)
    assert "version 0.5.23" in out and "96 running requests, 48 of each" in out
    assert "accept length 1.500" in out and "16.7% of a chain's 3 drafts" in out
    (server,) = document(capsys, text)["servers"]
    assert server["texts"][0]["content"]["num_draft_tokens"] == 4 and server["figures"]["accept_length"] == 1.5
    for other in ('{"internal_states": [{"effective_max_running_requests_per_dp": "many"}]}', '{"a": 1}', "{"):
        text.write_text(other)
        with pytest.raises(UserError, match="was not recognised as a log"):
            read_log.read(text)


@pytest.mark.parametrize(
    ("text", "words"), [(None, "There is no file"), ("nothing of the kind\n", "was not recognised as a log")]
)
@pytest.mark.slow
def test_what_is_no_log_is_one_sentence(tmp_path, text, words):
    path = tmp_path / "x"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=words):
        read_log.read(path)
    done = command(path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_a_named_engine_reads_what_was_not_recognised(kept):
    assert read_log.read(*kept(x="nothing of the kind\n"), "vllm").unknown_lines == 1


@pytest.mark.slow
def test_standard_input_and_a_compressed_file(tmp_path):
    done = command("-", input=VLLM)
    assert done.returncode == 0 and "accept length 1.900" in done.stdout
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(SGLANG.encode()))
    assert "outcome     served" in command(path).stdout
    assert "outcome     served" in command(path, "--engine", "sglang").stdout  # and not read as text


def test_two_snapshots_are_subtracted(kept, capsys):
    paths = kept(after__prom=(LATER, 1_700_000_060), before__prom=(VLLM, 1_700_000_000))  # in either order
    out = told(capsys, *paths)
    assert "before.prom -> " in out and "60.0 s by the files' times" in out
    assert "10.0 output tokens/s" in out and "accept length 3.000 in this interval" in out
    (server,) = document(capsys, *paths)["servers"]
    assert server["figures"]["accept_length"] == 3 and server["tokens_per_second"] == 10
    assert server["figures_from"].startswith("the interval from") and server["running"] == 3
    assert "20.0 output tokens/s" in told(capsys, *paths, "--seconds", "30")


def test_a_folder_is_read_and_what_is_no_text_of_an_engine_is_said(kept, capsys, tmp_path):
    kept(a__prom=(VLLM, 1.7e9), b__prom=(LATER, 1.7e9 + 60), cells__jsonl='{"key": 1}\n')
    out = told(capsys, tmp_path)
    assert "10.0 output tokens/s" in out and "not read    " in out and "cells.jsonl" in out
    assert len(document(capsys, tmp_path)["not_read"]) == 1


def test_a_log_and_metrics_of_one_server_are_told_together(kept, capsys):
    log, text = kept(
        server__log=SGLANG,
        metrics='sglang:num_running_reqs{tp_rank="0"} 20\nsglang:spec_verify_calls_total 600\n'
        "sglang:generation_tokens_total 900\n",
    )
    (server,) = document(capsys, log, text)["servers"]
    assert server["figures"]["accept_length"] == 1.5 and "counters" in server["figures_from"]
    assert [t["kind"] for t in server["texts"]] == ["log", "metrics"]
    assert "how the server started" not in " ".join(server["not_told"])
    assert len(document(capsys, log, *kept(other=VLLM))["servers"]) == 2  # not of one server


def test_an_interval_that_began_idle_keeps_its_acceptance_and_says_what_is_left_out(kept, capsys):
    line = SGLANG.splitlines()[3].replace("597.00", "0.39").replace("accept len: 1.00, accept rate: 0.25", "{}")
    (log,) = kept(log="\n".join(line.format(f"accept len: {al}, accept rate: {r}") for al, r in [(2.5, 0.63)]))
    out = told(capsys, log, "--num-draft-tokens", "4")
    assert "accept length 2.50" in out and "0.4 tokens/s (left out" in out
    assert "throughput of 1 line is left out" in out
    assert "throughput" in document(capsys, log)["servers"][0]["not_told"][-1]


def test_an_ngram_drafter_is_judged_by_all_decode_steps(kept, capsys):
    (text,) = kept(metrics=NGRAM)
    out = told(capsys, text, "--r", "1.5")
    assert "accept length 6.111" in out and "1.400 tokens per step over all decode steps" in out
    assert "speculation does not pay (decode speed-up 0.93" in out
    (server,) = document(capsys, text)["servers"]
    assert server["figures"]["tokens_per_step"] == pytest.approx(1.4)


def llamacpp_line(length, accepted, drafted):
    head = "0.04.203.423 I slot print_timing: id  1 | task 0 | draft acceptance = "
    counts = f"({accepted:5d} accepted / {drafted:5d} generated)"
    return f"{head}{accepted / drafted:.5f} {counts}, mean len = {length:5.2f}\n"


def test_a_drafter_that_contributes_nothing_is_named_as_such(kept, capsys):
    (log,) = kept(log=llamacpp_line(1.02, 92, 13638))
    out = told(capsys, log)
    assert "rate 0.00675 as printed" in out and "0.675% recomputed" in out
    assert out.splitlines()[-1].startswith(
        "in short    The drafter contributes nothing: accept length 1.020, 0.675% of its tokens accepted; "
    )


def test_survival_by_position_is_shown(kept, capsys):
    positions = llamacpp_line(2.92, 167, 259).split("draft acc")[0] + "     acc per pos = (0.805, 0.632, 0.483)\n"
    (log,) = kept(log=llamacpp_line(2.92, 167, 259) + positions)
    assert "by position 0.805, 0.632, 0.483" in told(capsys, log)


def test_every_draft_accepted_is_odd(kept, capsys):
    (log,) = kept(log=llamacpp_line(4.0, 30, 30) * 6)
    assert "every draft was accepted" in told(capsys, log)
    line = SGLANG.splitlines()[3].replace("accept len: 1.00, accept rate: 0.25", "accept len: 4.00, accept rate: 1.00")
    (log,) = kept(log=f"{line}\n" * 6)
    assert "every draft was accepted" in told(capsys, log)


def test_a_method_for_another_head_is_seen(kept, capsys):
    args = "[2026-01-05 10:00:00] server_args=ServerArgs(speculative_algorithm='EAGLE')\n"
    head = "[2026-01-05 10:08:00 TP0] Load weight end. elapsed=2.10 s, type=LlamaForCausalLMEagle3, avail mem=3.02 GB\n"
    (log,) = kept(log=args + head + SGLANG)
    assert "Method and head disagree: method EAGLE with the head LlamaForCausalLMEagle3" in told(capsys, log)


def test_one_failed_request_is_told_as_one(kept, capsys):
    line = "3.28.378.807 E srv    send_error: task id = 552, error: failed to process speculative batch\n"
    (log,) = kept(log=line)
    out = told(capsys, log)
    assert "failed at a request" in out and "the state of the server is not in this text" in out
    assert "outcome     not in this text" in out and "dead" not in out


def test_whether_it_pays_by_a_published_profile(kept, capsys):
    (text,) = kept(metrics=NGRAM)
    words = (text, "--profile", "lab-cpu", "--runs", "published")
    (server,) = document(capsys, *words, "--configuration", "llamacpp-ngram")["servers"]
    (pays,) = server["pays"]
    assert pays["cost"]["concurrency"] == 1 and pays["speed_up"] == pytest.approx(1.4 / pays["cost"]["r"], rel=1e-3)
    with pytest.raises(UserError, match="several configurations of llamacpp.*--configuration"):
        told(capsys, *words)
    with pytest.raises(UserError, match="no step cost ratio of configuration x"):
        told(capsys, *words, "--configuration", "x")


def test_bad_words_are_one_sentence(kept, capsys):
    (text,) = kept(metrics=VLLM)
    for words, said in (
        ([], "Name what to read"),
        ([text, "--seconds", "5"], "--seconds is the time between two snapshots"),
        ([*kept(log=SGLANG), "--seconds", "5"], "none is given"),
        (kept(first=(VLLM, 1.7e9), second=(VLLM.replace("} 190.0", "} 10.0"), 1.7e9 + 60)), "restarted between"),
    ):
        with pytest.raises(UserError, match=said):
            told(capsys, *words)


def test_the_schema_is_printed_and_is_one(capsys):
    jsonschema.Draft202012Validator.check_schema(json.loads(told(capsys, "--schema")))


def test_every_field_of_the_json_is_in_the_schema(kept, capsys):
    schema = json.loads(SCHEMA.read_text())["$defs"]
    (server,) = document(capsys, *kept(log=SGLANG))["servers"]
    content = server["texts"][0]["content"]
    assert content.keys() <= schema["log"]["properties"].keys()
    assert content["phases"][0].keys() <= schema["log"]["properties"]["phases"]["items"]["properties"].keys()
    assert content["acceptance"][0].keys() == schema["log"]["properties"]["acceptance"]["items"]["properties"].keys()
    (server,) = document(capsys, *kept(metrics=VLLM))["servers"]
    assert server["texts"][0]["content"].keys() == schema["counters"]["properties"].keys()


def test_arguments_are_a_namespace_that_other_commands_can_fill():
    args, module = parse("read", ["a", "b", "--r", "1.5"])
    assert isinstance(args, argparse.Namespace) and args.what == ["a", "b"] and module == read_log.__name__


def test_an_ngram_drafters_length_is_not_taken_for_what_a_step_yields(kept, capsys):
    row = (
        "statistics ngram_simple: #calls = 15, #gen drafts = 5, #acc drafts = 5, #gen tokens = 187, #acc tokens = 73\n"
    )
    out = told(capsys, *kept(log=row), "--r", "1.5")
    assert "A step with a draft yields 15.60 tokens, and how many steps had one is not told" in out
    assert "pays" not in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("draft acceptance rate = 0.57576 (   19 accepted /    33 generated)\n", "57.6% of the drafted tokens"),
        ("accept len: 1.00, accept rate: 0.00\n", "the drafter hardly contributes here"),
        ("Decode batch. #running-req: 3, gen throughput (token/s): 66.36, #queue-req: 0\n", "nor its acceptance"),
        ("[2026-01-05 10:00:00 TP0] Load weight begin. avail mem=93.10 GB\n", "sglang is still starting"),
    ],
)
def test_every_text_ends_with_a_sentence_to_act_on(kept, capsys, text, words):
    last = told(capsys, *kept(log=text)).splitlines()[-1]
    assert last.startswith("in short    ") and words in last and last.endswith(".")


def test_scrapes_in_one_file_are_subtracted_and_not_added(kept, capsys):
    (server,) = document(capsys, *kept(metrics=VLLM + LATER))["servers"]
    assert server["figures"]["accept_length"] == 3 and server["intervals"][0]["seconds"] is None
    assert [t["name"].rpartition("(")[2] for t in server["texts"]] == ["1 of 2)", "2 of 2)"]
    (server,) = document(capsys, *kept(metrics=VLLM + LATER), "--seconds", "60")["servers"]
    assert server["tokens_per_second"] == 10


def test_a_vllm_logs_ngram_drafter_is_judged_by_all_decode_steps(kept, capsys):
    head = "INFO 03-11 06:16:52 [{}.py:1] "
    engine = head.format("loggers") + "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
    engine += "48.3 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%\n"
    spec = head.format("metrics") + "SpecDecoding metrics: Mean acceptance length: 6.11, Accepted throughput: 13.80 "
    spec += "tokens/s, Drafted throughput: 15.00 tokens/s, Accepted: 138 tokens, Drafted: 150 tokens, Per-position "
    spec += "acceptance rate: 0.920, 0.900, Avg Draft acceptance rate: 92.0%\n"
    paths = kept(log=engine + spec)
    (server,) = document(capsys, *paths)["servers"]
    assert server["figures"]["tokens_per_step"] == pytest.approx(1.4)
    assert server["figures"]["per_position"] == pytest.approx([0.92, 0.9])
    assert server["figures_from"] == "the intervals of the log"
    assert "1.400 tokens per step over all decode steps; 7.83% had a draft" in told(capsys, *paths)


def test_a_profiles_method_tells_that_steps_may_have_no_draft(kept, capsys):
    words = (*kept(log=llamacpp_line(6.11, 138, 150)), "--profile", "lab-cpu", "--runs", "published")
    out = told(capsys, *words, "--configuration", "llamacpp-ngram", "-C", "4")
    assert "A step with a draft yields 6.11 tokens" in out and "pays" not in out
    (server,) = document(capsys, *words, "--configuration", "llamacpp-eagle3-aligned", "-C", "4")["servers"]
    (pays,) = server["pays"]
    assert (pays["cost"]["concurrency"], pays["cost"]["method"], server["running"]) == (4, "eagle3", 4)


def test_a_file_that_only_names_an_engine_is_no_log_of_it(kept, capsys, tmp_path):
    kept(server__log=SGLANG, environment__json='{"command": "/opt/vllm/bin/serve"}\n')
    found = document(capsys, tmp_path)
    assert [s["engine"] for s in found["servers"]] == ["sglang"] and len(found["not_read"]) == 1


def test_of_a_log_with_restarts_the_last_start_is_shown(kept, capsys):
    start = "0.00.002.152 I srv  llama_server: build_info: b1-x\n0.00.763.229 I srv  llama_server: model loaded\n"
    out = told(capsys, *kept(log=start * 3))
    assert "restarts    2 in this log" in out and out.count("phase       ") == 2
