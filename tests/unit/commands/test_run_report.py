"""The report around the measuring: the plan, the progress line, what a stop says, what is published."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runners.claims import reproduction
from runners.commands import run_report, show_plan
from runners.commands.progress_line import ProgressLine
from runners.core import paths, provenance, redact
from runners.core.errors import UserError
from runners.engines import environments
from runners.engines.engine import Files
from runners.measure import estimate, reference_answers
from runners.profiles import load, points
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
    assert "547.0 GB on disk" in text and "of 18 to measure" in text
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_whole_graph_dry_runs_for_both_profiles(tmp_path):
    for name in ("lab-cpu", KIMI):
        done = subprocess.run(
            [sys.executable, "-m", "runners", "report", "--profile", name, "--dry-run", "--runs", str(tmp_path)],
            capture_output=True, text=True, cwd=paths.ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        assert "run_configuration" in done.stdout + done.stderr


def test_an_estimate_takes_earlier_runs_where_there_are_any(tmp_path):
    p = load.load("lab-cpu")
    point = points.points(p, "quick")[0]
    assumed = estimate.Clock(p, tmp_path)
    assert not assumed.known()
    folder = tmp_path / p.name / "vllm-base"
    folder.mkdir(parents=True)
    row = {"schema_version": 1, "key": "k", "status": "ok", "workload": point.workload, "concurrency": 1}
    row |= {"configuration": "vllm-base", "engine": "vllm", "method": "none", "repeat": 0}
    (folder / "cells.jsonl").write_text(json.dumps(row | {"output_tokens": 100, "seconds": 50.0}) + "\n")
    (folder / "timeline.json").write_text(json.dumps([{"ready_seconds": 33.0, "phases": []}]))
    clock = estimate.Clock(p, tmp_path)
    assert clock.known() and clock.start("vllm-base") == 33.0
    assert clock.cell("vllm-base", point) == pytest.approx(point.requests * p.workload.output_tokens * 0.5)


def test_the_progress_line_counts_and_corrects_its_estimate(tmp_path, capsys):
    events = tmp_path / "events.jsonl"
    events.write_text("")
    follower = ProgressLine(events, {f"c{i}": 10.0 for i in range(10)}, 120.0)
    assert follower.left() == pytest.approx(120)
    with open(events, "a") as out:
        for i in range(5):
            out.write(json.dumps({"kind": "cell", "label": f"c{i}", "state": "begins"}) + "\n")
            out.write(json.dumps({"kind": "cell", "label": f"c{i}", "state": "ends", "seconds": 20.0}) + "\n")
            out.write(json.dumps({"kind": "span", "what": "cell", "seconds": 20.0}) + "\n")
        out.write(json.dumps({"kind": "say", "text": "x: void: too noisy"}) + "\n")
    follower.show(last=True)
    text = capsys.readouterr().out
    assert "x: void: too noisy" in text and "[5/10 cells" in text
    assert follower.left() == pytest.approx(5 * 20 + 10), "cells take twice as long as expected, starts were half done"
    assert follower.spent["cell"] == 100


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
