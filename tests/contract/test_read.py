"""`runners read` on texts a person may have: whose it is, what it says, and one sentence when it is none."""

import json
import subprocess
import sys

import pytest

from runners.commands import read_log
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


def command(*words):
    return subprocess.run([sys.executable, "-m", "runners", "read", *map(str, words)], capture_output=True, text=True)


@pytest.mark.slow
def test_a_log_tells_engine_phases_acceptance_and_requests(tmp_path):
    log = tmp_path / "server.log"
    log.write_text(SGLANG)
    done = command(log, "--num-draft-tokens", "4")
    assert done.returncode == 0, done.stderr
    assert "engine      sglang" in done.stdout and "phase       ready" in done.stdout
    assert "rate 0.25 as printed" in done.stdout and "0.00 recomputed" in done.stdout
    assert "48 running, 80 queued" in done.stdout and "outcome     served" in done.stdout
    found = json.loads(command(log, "--json").stdout)
    assert found["engine"] == "sglang" and len(found["acceptance"]) == 2


def test_colours_of_a_terminal_hide_nothing(tmp_path):
    plain, coloured = tmp_path / "plain", tmp_path / "coloured"
    plain.write_text(SGLANG)
    coloured.write_text(SGLANG.replace("Decode batch", "\x1b[32mDecode batch\x1b[0m"))
    one, two = read_log.read(plain), read_log.read(coloured)
    assert len(one.acceptance) == len(two.acceptance) == 2 and two.running_max == 48


@pytest.mark.slow
def test_a_metrics_text_gives_counts_and_the_recomputed_length(tmp_path):
    text = tmp_path / "metrics"
    text.write_text(VLLM)
    found = read_log.read(text)
    assert isinstance(found, Counters) and (found.steps, found.accepted, found.running) == (100, 90, 3)
    done = command(text)
    assert "accept length 1.900" in done.stdout and "draft acceptance 30.0%" in done.stdout
    assert "0.600, 0.300" in done.stdout


@pytest.mark.slow
def test_a_server_info_tells_the_cap_in_force(tmp_path):
    text = tmp_path / "server_info.json"
    state = {"effective_max_running_requests_per_dp": 48, "avg_spec_accept_length": 1.5}
    info = {"version": "0.5.23", "speculative_num_draft_tokens": 4, "internal_states": [state, state]}
    text.write_text(json.dumps(info, indent=1))
    done = command(text)
    assert "version 0.5.23" in done.stdout and "96 running requests, 48 of each" in done.stdout
    assert "accept length 1.500" in done.stdout and "16.7% of a chain's 3 drafts" in done.stdout
    assert json.loads(command(text, "--json").stdout)["num_draft_tokens"] == 4
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


def test_a_named_engine_reads_what_was_not_recognised(tmp_path):
    path = tmp_path / "x"
    path.write_text("nothing of the kind\n")
    assert read_log.read(path, "vllm").unknown_lines == 1
