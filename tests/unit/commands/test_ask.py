"""`specverdict ask`: two servers with known times and acceptance, with and without /metrics and a key; mistakes."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import httpx
import pytest
import yaml
from canned_server import canned
from slowness import slowness, wait_for

from runners.__main__ import main
from runners.analyse import inference
from runners.analyse.ask_answers import Answer, Speeds
from runners.commands import ask_words
from runners.core import paths
from runners.measure import gates
from runners.profiles import load
from runners.profiles.two_servers import Question, Side, content, shape
from runners.serve import ports

MOCK = Path(__file__).parents[2] / "support" / "mock_engine.py"
# A plain step of 20 ms; a step with drafts costs r = 1.25 of it and yields 2 tokens: decoding is 1.6 times as fast.
BASE, SPEC = ("--step-s", "0.02"), ("--step-s", "0.025", "--yields", "3,2,1,2")
KEY = "sk-known-to-both"


@pytest.fixture
def mock():
    """Starts the server with these flags; its address."""
    with ExitStack() as running:

        def start(*flags):
            port = ports.free_port()
            child = subprocess.Popen([sys.executable, str(MOCK), "--port", str(port), "--ttft-s", "0.5", *flags])
            running.callback(child.wait)
            running.callback(child.kill)
            url = f"http://127.0.0.1:{port}"
            assert wait_for(lambda: answers(url))
            return url

        yield start


def answers(url):
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def truth(url):
    """(TTFT ms, TPOT ms) by the server's own record."""
    record = httpx.get(f"{url}/record", trust_env=False).json()
    whole = [r for r in record if r[3] == 48]
    tpot = 1000 * sum(r[2] - r[1] for r in whole) / sum(r[3] - 1 for r in whole)
    return median(1000 * (r[1] - r[0]) for r in whole), tpot


@pytest.fixture(autouse=True)
def no_headroom_needed(monkeypatch):
    monkeypatch.setattr(gates, "HEADROOM", 1)  # short windows are mostly our own polls


def ask(base, spec, *more, prompts="chat"):
    return main(["ask", "--base", base, "--spec", spec, "--prompts", prompts, "--output-tokens", "48", *more])


@pytest.mark.slow
def test_its_figures_are_those_of_two_servers_whose_times_and_acceptance_are_known(mock, capsys):
    base, spec = mock(*BASE), mock(*SPEC)
    assert ask(f"{base}/v1", spec, "-C", "2", "--minutes", "1.5", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {s["engine"] for s in told["servers"].values()} == {"vllm"} and told["servers"]["spec"]["k"] == 2
    (one,) = told["answers"]
    assert one["pays"] == inference.YES and not one["not_seen"] and not one["reasons"], one
    near = 0.02 * slowness()  # of a busy machine the client's own delay is part of what it sees
    assert one["accept_length"] == pytest.approx(2.0, rel=0.02)
    assert one["survival"] == pytest.approx([0.75, 0.25], abs=0.02)
    for side, url in (("base", base), ("spec", spec)):
        ttft, tpot = truth(url)
        assert one[side]["ttft_ms"] == pytest.approx(ttft, rel=near)
        assert one[side]["tpot_ms"] == pytest.approx(tpot, rel=near)
    faster = truth(base)[1] / truth(spec)[1]
    assert one["decode_speed_up"][0] == pytest.approx(faster, rel=near)
    assert one["step_cost"][0] == pytest.approx(2.0 / faster, rel=2 * near)
    assert one["needed_length"] == pytest.approx(1.03 * one["step_cost"][0])
    assert one["ratio"][1] < one["ratio"][0] < one["ratio"][2] and "would stop paying below" in one["turns"]


@pytest.mark.slow
def test_without_metrics_it_answers_by_the_clients_clock_and_says_what_it_could_not_see(mock, capsys, monkeypatch):
    base, spec = (mock(*side, "--no-metrics", "--key", KEY) for side in (BASE, SPEC))
    assert ask(base, spec, "-C", "2", "--minutes", "0.5") == 2
    assert "answers 401: it wants an API key: name the variable" in capsys.readouterr().err
    monkeypatch.setenv("MOCK_KEY", KEY)
    assert ask(base, spec, "-C", "2", "--minutes", "1", "--api-key-env", "MOCK_KEY") == 0
    out, err = capsys.readouterr()
    assert out.startswith("C=2 · chat: pays: 1.") and "by the client's clock" in out
    assert "Not seen: spec: its counters (no /metrics)" in out and "died" not in out + err
    assert KEY not in out + err


@pytest.mark.slow
def test_what_is_kept_is_a_profile_with_its_runs(mock, capsys, monkeypatch, tmp_path):
    for folder in ("profiles", "runs"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "profiles")
    monkeypatch.setattr(paths, "LOCAL_RUNS", tmp_path / "runs")
    base, spec = mock(*BASE), mock(*SPEC)
    own = tmp_path / "own.txt"
    own.write_text("Name three rivers.\nName three lakes.\nName three hills.\n")
    assert ask(base, spec, "-C", "1", "--minutes", "0.5", "--keep", "mine", prompts=str(own)) == 0
    profile = load.load("mine")
    assert profile.configuration("spec").attach.url == spec and profile.base_of("spec") == "base"
    assert profile.workload.prompt_sets == ["own"]
    assert (tmp_path / "runs" / "mine" / "spec" / "cells.jsonl").is_file()
    assert "make report PROFILE=mine" in capsys.readouterr().err
    assert ask(base, spec, "--keep", "mine") == 2, "nothing that is there is written over"


def command(*flags):
    return " ".join([sys.executable, str(MOCK), "--port", "{port}", "--ttft-s", "0.2", *flags])


@pytest.mark.slow
@pytest.mark.parametrize("how", [[], ["--one-at-a-time"]])
def test_it_starts_and_stops_the_servers_itself(how, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    both = ["--base-command", command(*BASE), "--spec-command", command(*SPEC), "--minutes", "1", "-C", "1", "--json"]
    assert main(["ask", *both, "--prompts", "chat", "--output-tokens", "48", *how]) == 0
    told = json.loads(capsys.readouterr().out)
    (one,) = told["answers"]
    assert one["blocks"] >= 2 and one["accept_length"] == pytest.approx(2.0, rel=0.02), one
    assert one["ratio"][0] > 1 and told["covers"] == ask_words.STARTED and told["servers"]["spec"]["url"] is None


@pytest.mark.slow
def test_a_command_that_does_not_start_is_said_with_its_first_error(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    broken = f"{sys.executable} -c 'raise SystemExit(3)' {{port}}"
    assert main(["ask", "--base-command", broken, "--spec", "http://127.0.0.1:9"]) == 2
    assert "--base-command died while starting: ended with exit code 3" in capsys.readouterr().err


MODELS = {"data": [{"id": "m", "owned_by": "vllm"}]}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--body", '{"max_tokens": 9}'],
            "--body: `max_tokens` is not set here: `output_tokens` sets it",
        ),
        (["--body", '{"temperature": "hot"}'], "`temperature` must be a number >= 0"),
        (["--spec-body", '{"temperature": 1}'], "--spec-body: `temperature` is not set here"),
        (["--keep", "x", "--header", "X-Api-Key: hush"], "--keep writes header X-Api-Key into a profile"),
        (
            ["--keep", "x", "--body", '{"api_key": "hush"}'],
            "--keep writes --body into a profile, and it holds a secret",
        ),
        (["--api-key-env", "NOT_SET_HERE"], "environment variable NOT_SET_HERE must hold the server's key"),
        (["--header", "X-Team: ${NOT_SET_HERE}"], "environment variable NOT_SET_HERE"),
    ],
)
def test_a_mistake_is_one_sentence(words, sentence, capsys):
    with canned({"/v1/models": MODELS}) as url:
        assert ask(url, url, *words) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and sentence in said[0] and "hush" not in said[0]


WRONG = [["-C", "1,x"], ["-C", "0"], ["--body", "[]"], ["--header", "no colon"], ["--spec-command", "serve"]]


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_option_says_what_it_must_be(words, capsys):
    with pytest.raises(SystemExit) as end:
        ask("http://a", "http://b", *words)
    assert end.value.code == 2 and ": must " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--base", "a"], "Give exactly one of --spec and --spec-command."),
        (
            ["--base", "a", "--base-command", "x {port}", "--spec", "b"],
            "Give exactly one of --base and --base-command.",
        ),
        (["--base", "a", "--spec-command", "x {port}", "--spec-body", '{"a": 1}'], "goes with the address of a server"),
    ],
)
def test_each_side_is_an_address_or_a_command(words, sentence, capsys):
    assert main(["ask", *words]) == 2 and sentence in capsys.readouterr().err


def test_no_server_is_said_at_once(capsys):
    assert ask("127.0.0.1:9", "127.0.0.1:9") == 2
    assert "No server answers at http://127.0.0.1:9; start it" in capsys.readouterr().err


def question(**changes):
    usual = dict(engine="vllm", version="1", target="m", prompt_sets=["chat"], concurrencies=[1, 4, 16])
    usual |= dict(output_tokens=128, ends="fixed", temperature=0.0, body={}, tokens_per_second=100.0, seconds=600.0)
    return Question(**usual | changes)


def test_the_time_holds_several_blocks_of_each_load():
    plan = shape(question())
    assert 3 <= plan.window_s <= 30 and 8 <= plan.starts <= 40 and plan.blocks == 1
    assert shape(question(seconds=60.0)).window_s == 3.0, "no window is shorter than that"
    assert shape(question(seconds=3600.0)).window_s > plan.window_s


def test_where_servers_are_started_fewer_starts_hold_more_blocks():
    slow = shape(question(start_seconds=120.0, at_once=1))
    assert slow.starts < shape(question()).starts and slow.blocks > 1


def test_a_profile_is_made_that_loads(tmp_path):
    sides = [Side(url=f"http://127.0.0.1:{n}", title="t", model="m", cap=16) for n in (1, 2)]
    spec = Side(**{**vars(sides[1]), "method": "unnamed", "k": 3, "headers": {"X-Team": "${TEAM}"}})
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(content("title", sides[0], spec, question())))
    found = load.load(str(file))
    assert found.method_of("spec") == "unnamed" and found.base_of("spec") == "base" and not found.drafts("base")
    assert found.configuration("spec").attach.headers == {"X-Team": "${TEAM}"}
    assert found.workload.presets["quick"].requests == {1: 4, 4: 8, 16: 32}


def test_the_words_say_what_would_turn_each_answer():
    both = dict(base=Speeds(40.0, 20.0, 50.0), spec=Speeds(41.0, 12.5, 78.0), level=0.98, blocks=8)
    both |= dict(accept_length=2.0, per_step=2.0, step_cost=(1.25, 1.2, 1.3), decode_speed_up=(1.6, 1.5, 1.7))
    yes = Answer("chat", 4, inference.YES, (1.55, 1.5, 1.6), k=2, survival=(0.75, 0.25), **both)
    no = Answer("chat", 8, inference.NO, (0.8, 0.7, 0.9), **both)
    near = Answer("chat", 16, inference.UNDECIDED, (1.03, 0.9, 1.2), more_minutes=6.2, **both)
    never = Answer("chat", 32, inference.UNDECIDED, (1.03, None, None), capped_at=8)
    void = Answer("chat", 64, "not measured here", reasons=("spec: HTTP 500",), not_seen=("spec: its counters",))
    text = "\n".join(ask_words.lines([yes, no, near, never, void], started=False))
    for words in (
        "C=4 · chat: pays: 1.55 [1.50, 1.60] times the base's throughput (98% interval over 8 blocks)",
        "base -> spec: tokens/s 50.0 -> 78.0 · TTFT ms 40 -> 41 · TPOT ms 20.0 -> 12.5",
        "accept length 2.00 of at most 3; accepted by position 75%, 25%",
        "costs r = 1.25 [1.20, 1.30] plain steps and yields 2.00 tokens: decoding is 1.60 [1.50, 1.70] times as fast",
        "it would stop paying below 1.25 tokens a step",
        "C=8 · chat: does not pay",
        "it would pay from 1.29 tokens a step on",
        "about 6 more minutes would decide it",
        "so near the margin of 3% that no measuring in sight decides it",
        "a server runs at most 8 at once: the others of the 32 wait",
        "C=64 · chat: not measured\n  spec: HTTP 500",
        "The intervals hold for these two running servers",
        "Not seen: spec: its counters.",
    ):
        assert words in text, text
