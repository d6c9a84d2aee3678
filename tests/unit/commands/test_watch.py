"""`specverdict watch`: one line an interval, whatever the server does meanwhile."""

import json
import subprocess
import sys

import pytest
from canned_server import canned

from runners.__main__ import parse
from runners.commands import watch
from runners.core.errors import UserError
from runners.readers.sources import Source

URL = "http://box:8000"


def metrics(tokens, accepted=None, running=2):
    text = f"vllm:generation_tokens_total {tokens}\nvllm:num_requests_running {running}\nvllm:num_requests_waiting 0\n"
    if accepted is not None:
        text += f"vllm:spec_decode_num_drafts_total {tokens - accepted}\n"
        text += f"vllm:spec_decode_num_draft_tokens_total {3 * (tokens - accepted)}\n"
        text += f"vllm:spec_decode_num_accepted_tokens_total {accepted}\n"
    return text


@pytest.fixture
def shown(monkeypatch, capsys):
    """What `watch` prints for these answers, ten seconds apart. An exception among them is raised."""

    def run(answers, *words):
        moments = iter(enumerate(answers))

        def fetch(_polls, _url):
            number, answer = next(moments)
            if isinstance(answer, BaseException):
                raise answer
            return Source(URL, kept=answer, at=1.7e9 + 10 * number)

        monkeypatch.setattr(watch.metrics_url, "fetch", fetch)
        monkeypatch.setattr(watch.time, "sleep", lambda _: None)
        args, _ = parse("watch", [URL, "--count", str(max(1, len(answers) - 1)), *words])
        assert watch.main(args) == 0
        return capsys.readouterr().out.splitlines()

    return run


def test_a_line_an_interval(shown):
    head, first, second = shown([metrics(100, 50), metrics(400, 200), metrics(400, 200)], "--r", "1.5")
    assert head.startswith("vllm at http://box:8000")
    assert "running 2, queued 0" in first and "30.0 tokens/s" in first
    assert "accept length 2.00 (33.3% of drafts)" in first and "speed-up 1.33: yes" in first
    assert "0.0 tokens/s" in second and "nothing drafted" in second and "speed-up" not in second


def test_a_server_without_speculation_has_no_acceptance(shown):
    _, line = shown([metrics(100), metrics(400)])
    assert "30.0 tokens/s" in line and "accept" not in line and "drafted" not in line


def test_steps_without_a_draft_are_told(shown):
    later = metrics(1100, 50).replace("drafts_total 1050", "drafts_total 110")
    _, line = shown([metrics(100, 50).replace("drafts_total 50", "drafts_total 100"), later])
    assert "tokens a step (1% with a draft)" in line


def test_a_gauge_is_taken_where_nothing_is_counted(shown):
    gauge = 'sglang:spec_accept_length{tp_rank="0"} 1.65\nsglang:num_running_reqs{tp_rank="0"} 8\n'
    _, line = shown([gauge, gauge], "--r", "1.65")
    assert "accept length 1.65 (gauge)" in line and "speed-up 1.00: no difference" in line


def test_a_restart_and_a_silence_are_said_and_the_watch_goes_on(shown):
    answers = [metrics(100, 50), metrics(10, 5), UserError("it does not answer."), metrics(40, 20)]
    _, restart, silence, after = shown(answers)
    assert "restarted" in restart and "it does not answer." in silence
    assert "accept length 2.00" in after and "1.5 tokens/s" in after  # 30 tokens in the 20 s since the last answer


def test_ctrl_c_ends_it(shown):
    assert len(shown([metrics(100), metrics(200), KeyboardInterrupt(), metrics(300)])) == 2


def test_lines_of_json(shown):
    rows = [json.loads(line) for line in shown([metrics(100, 50), metrics(400, 200), UserError("no")], "--json")]
    assert rows[0]["interval"]["figures"]["accept_length"] == 2 and rows[0]["note"] is None
    assert rows[1]["interval"] is None and rows[1]["note"] == "no"


def test_what_is_no_metrics_text_is_one_sentence(shown):
    with pytest.raises(UserError, match="must answer with a /metrics text|was not recognised"):
        shown(["<html>hello</html>"])
    with pytest.raises(UserError, match="must answer with a /metrics text"):
        shown(["[2026-01-05 10:09:00 TP0] The server is fired up and ready to roll!\n"])


@pytest.mark.slow
def test_a_running_server_is_watched_by_its_address():
    class Growing(dict):
        def get(self, _path, _default):
            self["tokens"] += 100
            return metrics(self["tokens"], 0)

    with canned(Growing(tokens=0)) as url:
        words = [sys.executable, "-m", "runners", "watch", f"{url}/v1", "--every", "0.1", "--count", "2"]
        done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head == f"vllm at {url}/metrics, every 0.1 s; Ctrl-C ends it"
    assert len(lines) == 2 and all("tokens/s" in line and "accept length 1.00" in line for line in lines)
