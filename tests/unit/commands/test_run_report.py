"""The report around the measuring: the plan, the progress line, what a stop says, what is published."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runners.claims import reproduction
from runners.commands import progress_line, run_report, show_plan
from runners.core import paths, provenance, redact
from runners.core.errors import UserError
from runners.engines import environments
from runners.engines.engine import Files
from runners.measure import estimate, reference_answers
from runners.profiles import load
from runners.profiles.points import Load
from runners.profiles.prompts import Prompt
from runners.readers import trim_log
from runners.readers.registry import reader
from runners.serve import model_files
from runners.serve.command import command

KIMI = "kimi-k2.5-8x-rtx-pro-6000"


def test_a_dry_run_prints_command_environment_and_plan_and_starts_nothing(tmp_path, capsys):
    assert show_plan.show(load.load(KIMI), None, tmp_path) == 0
    text = capsys.readouterr().out
    for name in ("vllm-base", "sglang-base", "sglang-eagle3-aq-medai", "sglang-eagle3-own"):
        assert f"[{name}]" in text
    assert "python3 -m sglang.launch_server --model-path /models/Kimi-K2.5" in text
    assert "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1" in text
    assert "C=[64, 128] will be marked as capped at 48" in text
    assert "547.0 GB on disk" in text and "one start    18 points, " in text
    assert "one server fits at a time: a ratio takes a start of each side, and one start alone decides nothing" in text
    assert "(by the profile's assumptions)" in text and "no limit of time" in text
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_whole_graph_dry_runs_for_both_profiles(tmp_path):
    for name in ("lab-cpu", KIMI):
        done = subprocess.run(
            [sys.executable, "-m", "runners", "report", "--profile", name, "--dry-run", "--runs", str(tmp_path)],
            capture_output=True, text=True, cwd=paths.ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        assert "measure" in done.stdout + done.stderr and "analyse" in done.stdout + done.stderr


def test_the_labs_plan_says_what_its_minutes_are_for(tmp_path, capsys):
    lab = load.load("lab-cpu")
    assert show_plan.show(lab, "quick", tmp_path) == 0
    text = capsys.readouterr().out
    assert "base and one other are alive at once, and ratios are made within seconds" in text
    chosen = lab.preset("quick")
    assert f"at most {chosen.rounds} start(s) of each comparison" in text and f"at most {chosen.minutes:g} min" in text
    left_out = chosen.leave_out[0]
    assert f"[{left_out}]" in text and "not measured at preset quick" in text


LOAD = Load("chat", 4)


def written_run(root, profile, **cell):
    """One good cell and one start of vllm-base, measured before."""
    folder = root / profile.name / "vllm-base"
    folder.mkdir(parents=True)
    row = {"schema_version": 1, "key": "k", "status": "ok", "workload": LOAD.workload, "concurrency": LOAD.concurrency}
    row |= {"configuration": "vllm-base", "engine": "vllm", "method": "none", "repeat": 0}
    row |= {"output_tokens": 100, "seconds": 50.0} | cell
    (folder / "cells.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "timeline.json").write_text(json.dumps([{"ready_seconds": 33.0, "phases": []}]))


def test_an_estimate_takes_earlier_runs_where_there_are_any(tmp_path):
    p = load.load("lab-cpu")
    assumed = estimate.Clock(p, "quick", tmp_path)
    assert not assumed.known() and assumed.basis() == "the profile's assumptions"
    assert assumed.start("vllm-base") == p.timing.start_seconds["vllm"]
    written_run(tmp_path, p)
    clock = estimate.Clock(p, "quick", tmp_path)
    assert clock.known() and clock.basis() == "earlier runs" and clock.start("vllm-base") == 33.0
    tokens, c, chosen = p.output_tokens("quick"), LOAD.concurrency, p.preset("quick")
    # Two tokens a second: the window's answers and those in flight at its ends, or its longest time; and a ramp.
    window = min((chosen.requests[c] + c) * tokens / 2, chosen.window_seconds)
    expected = window + c * tokens / 2 / 4
    assert clock.cell("vllm-base", LOAD) == pytest.approx(expected)


@pytest.mark.parametrize("cell", [{"status": "void"}, {"load": "open", "rate": 1.0}])
def test_an_estimate_goes_by_good_cells_of_the_closed_loop_alone(tmp_path, cell):
    p = load.load("lab-cpu")
    written_run(tmp_path, p, **cell)
    assert not estimate.Clock(p, "quick", tmp_path).known()


def test_a_start_is_paid_for_once_and_an_attached_server_not_at_all(tmp_path):
    p = load.load("lab-cpu")
    clock, sides = estimate.Clock(p, "quick", tmp_path), ("vllm-base", "vllm-ngram")
    both, one = clock.visit(sides, [LOAD]), clock.visit(sides, [LOAD], alive=["vllm-base"])
    assert both.starts == 2 * one.starts > 0 and both.cells == one.cells and both.total == both.cells + both.starts
    content = p.model_dump()
    content["configurations"]["vllm-base"]["attach"] = {"url": "http://127.0.0.1:8000"}
    attached = estimate.Clock(type(p).model_validate(content), "quick", tmp_path)
    assert attached.start("vllm-base") == 0


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_first_pass_starts_each_base_once(tmp_path, at_once):
    p = load.load("lab-cpu")
    p = p.model_copy(update={"hardware": p.hardware.model_copy(update={"servers_at_once": at_once})})
    names = ["vllm-base", "vllm-ngram", "vllm-eagle3-aligned"]
    clock = estimate.Clock(p, "quick", tmp_path)
    found = estimate.first_pass(p, names, clock)
    assert sum(e.starts for e in found.values()) == pytest.approx(3 * clock.start("vllm-base"))
    assert [len(c.sides) for c in found] == ([1, 1, 1] if at_once == 1 else [2, 2])


def reported(minutes=None, runs=None, **more):
    return run_report.ReportRun(load.load("lab-cpu"), "lab-cpu", "quick", str(runs or "local"), minutes=minutes, **more)


def test_seconds_after_measuring_are_those_of_last_time(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", tmp_path / "published")
    run = reported(runs=tmp_path)
    assert run_report.after_s(run) == run_report.AFTER_S
    for root, seconds in ((paths.PUBLISHED_RUNS, 41.0), (tmp_path, 33.0)):
        folder = root / "lab-cpu"
        folder.mkdir(parents=True)
        (folder / "report-quick.json").write_text(json.dumps({"after_s": seconds}))
        assert run_report.after_s(run) == seconds, "one's own run before the published one"
    (tmp_path / "lab-cpu" / "report-quick.json").write_text(json.dumps({"wall_s": 3}))
    assert run_report.after_s(run) == 41.0, "a file of an earlier release does not say"


def test_the_budget_of_measuring_leaves_time_for_the_book(tmp_path, monkeypatch):
    monkeypatch.setattr(run_report, "after_s", lambda _: 80.0)
    now = time.monotonic()
    assert reported(10).budget_s(now) == pytest.approx(10 * 60 - 80, abs=1)
    assert reported(10).budget_s(now - 100) == pytest.approx(10 * 60 - 180, abs=1)
    assert reported(1).budget_s(now) == run_report.LEAST_S, "something is measured in any case"
    minutes = load.load("lab-cpu").preset("quick").minutes
    assert reported().budget_s(now) == pytest.approx(minutes * 60 - 80, abs=1), "the preset's minutes"
    case = run_report.ReportRun(load.load(KIMI), KIMI, "full", "local")
    assert case.budget_s(now) is None, "no limit where the preset has none"


class Now:
    """A clock that a test sets."""

    def __init__(self, monkeypatch):
        self.at = 1000.0
        monkeypatch.setattr(progress_line.time, "monotonic", lambda: self.at)


@pytest.fixture
def line(tmp_path, monkeypatch):
    """(line, write an event, clock) of a report: 120 s of measuring and 60 s after it."""
    now, events = Now(monkeypatch), tmp_path / "events.jsonl"
    events.write_text("")

    def write(kind, **event):
        with open(events, "a") as out:
            out.write(json.dumps({"kind": kind} | event) + "\n")

    return progress_line.ProgressLine(events, 120.0, 60.0), write, now


def test_the_time_left_holds_analysis_and_book(line, capsys):
    follower, write, now = line
    assert follower.left() == 180
    now.at += 100
    assert follower.left() == 20 + 60
    write("campaign", state="start", left_s=None, to_do_s=50.0)
    follower.show(last=True)
    now.at += 20
    assert follower.left() == 30 + 60, "what the campaign said last"
    now.at += 100
    assert follower.left() == 60, "never less than what comes after measuring"
    write("campaign", state="ends")
    follower.show(last=True)
    assert follower.left() == 60 and follower.ended_at == now.at
    now.at += 15
    assert follower.left() == 45
    now.at += 100
    assert follower.left() == 0
    assert "analysis and book" in capsys.readouterr().out


def test_the_progress_line_says_how_many_points_are_decided(line, capsys):
    follower, write, now = line
    write("cell", label="vllm-base · chat · C=4 · block 0", state="begins")
    write("cell", label="vllm-base · chat · C=4 · block 0", state="ends", seconds=20.0)
    write("span", what="cell", seconds=20.0)
    follower.show()
    text = capsys.readouterr().out
    assert "[1 cells · " in text and "about 3 min left] vllm-base · chat · C=4 · block 0" in text, text
    write("campaign", state="look", decided=5, points=24, left_s=300.0, to_do_s=240.0)
    write("say", text="x: void: too noisy")
    now.at += 60
    follower.show(last=True)
    text = capsys.readouterr().out
    assert "5 of 24 points decided · 1.0 min" in text and "  x: void: too noisy" in text, "a void cell has its own line"
    assert follower.left() == 300, "240 s of measuring as just said, 60 s after it"
    assert follower.spent["cell"] == 20


def test_a_stopped_report_quotes_the_notebooks_own_error(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "runners.errors.UserError: Port 1 is in use; stop it.\npapermill.exceptions.PapermillExecutionError: \n"
        "CalledProcessError in file Snakefile\nWorkflowError:\nAt least one job did not complete successfully.\n"
    )
    assert run_report._reason(log) == "Port 1 is in use; stop it."


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "sglang"])
def test_a_trimmed_log_keeps_phases_errors_and_says_what_went(kind):
    noise = [f"something ordinary {i}" for i in range(500)]
    text = "\n".join([*noise[:250], "ValueError: the real one", *noise[250:], "last"])
    kept = trim_log.trim_log(text, reader(kind))
    assert "ValueError: the real one" in kept and kept.rstrip().endswith("last")
    assert "lines left out]" in kept and len(kept.splitlines()) < 30


def test_paths_of_this_machine_are_named_not_shown(monkeypatch, tmp_path):
    monkeypatch.setenv("SPECVERDICT_CACHE", str(tmp_path))
    text = redact.without_home(f"{tmp_path}/models/x {paths.ROOT}/runners/y {Path.home()}/z")
    assert text == "$CACHE/models/x $ROOT/runners/y ~/z"


def test_only_allowed_variables_are_recorded(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    monkeypatch.setenv("MY_SECRET_TOKEN", "x")
    recorded = provenance.collect()
    assert recorded["variables"]["CUDA_VISIBLE_DEVICES"] == "2" and "MY_SECRET_TOKEN" not in json.dumps(recorded)


def test_reference_answers_are_asked_once(monkeypatch, tmp_path):
    monkeypatch.setenv("SPECVERDICT_CACHE", str(tmp_path))
    calls = []

    def compute(folder, missing, tokens):
        calls.append(sorted(p.id for p in missing.values()))
        return {digest: f"answer to {p.id}" for digest, p in missing.items()}

    monkeypatch.setattr(reference_answers, "_compute", compute)
    monkeypatch.setattr(environments, "ensure", lambda *_: Path("python"))
    ask = [Prompt(str(i), "t", ({"role": "user", "content": str(i)},)) for i in range(3)]
    assert reference_answers.answers(tmp_path, ask[:2], 8) == {"0": "answer to 0", "1": "answer to 1"}
    assert reference_answers.answers(tmp_path, ask, 8)["2"] == "answer to 2"
    assert reference_answers.answers(tmp_path, ask[:1], 9) == {"0": "answer to 0"}
    assert calls == [["0", "1"], ["2"], ["0"]]


def test_a_gguf_target_is_needed_for_llamacpp():

    p = load.load("lab-cpu")
    with pytest.raises(UserError, match="serves a GGUF file"):
        command(p, "llamacpp-base", Files(), 1)


def test_secrets_are_not_shown():
    assert redact.masked({"HF_TOKEN": "x", "A": "b"}) == {"HF_TOKEN": "(not shown)", "A": "b"}
    assert redact.masked_argv(["p", "--api-key", "x", "--port", "1"]) == [
        "p",
        "--api-key",
        "(not shown)",
        "--port",
        "1",
    ]
    assert redact.masked_argv(["p", "--api-key=x"]) == ["p", "--api-key=(not shown)"]


def test_what_only_sounds_like_a_secret_is_shown():
    line = ["p", "--tokenizer", "/t", "--speculative-num-draft-tokens", "4", "--max-num-batched-tokens=8192"]
    assert redact.masked_argv(line) == line
    for p in map(load.load, load.names()):
        for name, c in p.configurations.items():
            argv = command(p, name, model_files.planned_files(p, c.drafter), 1).argv
            assert redact.masked_argv(argv) == argv, name


@pytest.mark.slow
def test_a_missing_target_stops_a_report_before_anything_is_measured(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "runners", "report", "--profile", KIMI, "--runs", str(tmp_path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and "target Kimi-K2.5 is not at /models/Kimi-K2.5" in done.stderr


def test_nothing_published_names_a_path_of_this_machine():
    files = [f for place in (paths.PUBLISHED_RUNS, reproduction.ELSEWHERE) for f in place.rglob("*")]
    published = [f for f in files if f.suffix in (".json", ".jsonl", ".log", ".ipynb")]
    assert published
    for file in published:
        text = file.read_text()
        for place in (str(paths.ROOT), str(Path.home()) + "/", str(paths.cache())):
            assert place not in text, f"{file} names {place}"
