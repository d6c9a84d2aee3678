"""`verdict`: what the ledgers say, on the terminal and as JSON; nothing is written and nothing executed."""

import json
from pathlib import Path

import pytest
import synthetic_runs

from runners.__main__ import main, parse
from runners.commands import show_verdict
from runners.report.chapters.verdict import terminal

VOID = "31 of 32 requests completed"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=3, prompts=16)


def show(runs, *words):
    args, _ = parse("verdict", ["--runs", str(runs), *words])
    return show_verdict.main(args)


def test_it_says_what_to_serve_whether_it_pays_and_what_users_wait(runs, capsys):
    before = {p: p.stat().st_mtime_ns for p in Path(runs).rglob("*")}
    assert show(runs) == 0
    said = capsys.readouterr().out
    assert "For chat, one request at a time" in said and "speculation pays at" in said
    lines = said.splitlines()
    head = next(line for line in lines if "TTFT ms" in line)
    assert all(word in head for word in ("tok/s", "TPOT ms", "end to end ms", "requests"))
    row = next(line for line in lines if line.startswith("vllm-base") and " / " in line)
    assert row.count(" / ") == 6, "p50 / p95 / p99 of three figures"
    assert any(line.startswith("llamacpp-ngram: 1 of 18 cells are void") for line in lines)
    assert "  1: machine busy: 0.8 cores of other work" in lines
    assert "vllm-eagle3-untrained: not measured here (the engine could not be installed)" in lines
    assert {p: p.stat().st_mtime_ns for p in Path(runs).rglob("*")} == before, "nothing is written"


def test_json_holds_the_verdict_and_the_figures(runs, capsys):
    assert show(runs, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"answers", "points", "not_measured", "figures", "void", "schema_version"} <= set(found)
    (one,) = [
        f for f in found["figures"] if (f["configuration"], f["workload"], f["concurrency"]) == ("vllm-base", "chat", 4)
    ]
    assert one["cells"] == 3 and one["requests"] == 48 and one["output_tokens_per_second"] > 0
    for figure in ("ttft_ms", "tpot_ms", "e2e_ms"):
        assert one[f"{figure}_p50"] <= one[f"{figure}_p95"] <= one[f"{figure}_p99"]
    assert found["void"] == [
        {"configuration": "llamacpp-ngram", "cells": 1, "of": 18, "reason": "machine busy: 0.8 cores of other work"}
    ]


def test_without_a_cell_it_says_what_to_do(tmp_path, capsys):
    assert main(["verdict", "--runs", str(tmp_path)]) == 2
    assert "has no cells of profile lab-cpu; measure first" in capsys.readouterr().err


def test_only_some_configurations_are_shown_without_the_choice(runs):
    said = terminal.text(terminal.of(runs, "lab-cpu"), only=["vllm-base", "vllm-ngram"])
    assert "vllm-ngram" in said and "llamacpp" not in said and "For chat" not in said


def test_void_cells_alone_are_told_with_their_reasons(tmp_path):
    made = synthetic_runs.write(tmp_path, repeats=1, prompts=4, missing=())
    for path in made.rglob("cells.jsonl"):
        rows = [json.loads(line) | {"status": "void", "reasons": [VOID]} for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    figures = terminal.of(made, "lab-cpu")
    said = terminal.text(figures)
    assert "For chat, one request at a time: not measured here." in said
    assert "vllm-ngram: 6 of 6 cells are void\n  6: 31 of 32 requests completed" in said
    assert set(figures.as_json()["figures"][0]) >= {"cells", "void", "ttft_ms_p99"}
