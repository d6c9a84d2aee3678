"""Chapters whose runs hold nothing of their own show the published run, and say so; nothing else reads it."""

import json

import pytest
import synthetic_runs

from runners.core import paths
from runners.report import book, borrowed, notebook
from runners.report.chapters import alignment

PROFILE = synthetic_runs.PROFILE


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return synthetic_runs.write(tmp_path_factory.mktemp("own"), repeats=1, prompts=4)


@pytest.fixture
def published(tmp_path, monkeypatch):
    folder = tmp_path / PROFILE
    (folder / "alignment").mkdir(parents=True)
    drift = "source,boundary,drift,to_next\nreference,1,0.01,0.5\n"
    (folder / "alignment" / "drift.csv").write_text(drift)
    record = {"hardware": {"cpu": "A <fast> CPU", "cores": 2}, "recorded_at": "2026-11-02T10:00:00+00:00"}
    for name in (PROFILE, f"{PROFILE}-sweeps"):
        (tmp_path / name / "vllm-base").mkdir(parents=True)
        (tmp_path / name / "vllm-base" / "cells.jsonl").write_text("")
        (tmp_path / name / "vllm-base" / "environment.json").write_text(json.dumps(record))
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", tmp_path)
    return tmp_path


def test_what_was_not_measured_comes_from_the_published_run_with_machine_and_date(own, published):
    for found in (borrowed.alignment(own, PROFILE), borrowed.swept(own, PROFILE)):
        assert (found.runs, found.profile) == (published, PROFILE)
        assert "Not measured by this report" in found.mark and "2026-11-02" in found.mark
        assert "A &lt;fast&gt; CPU" in found.mark


def test_own_results_are_shown_without_a_mark(published):
    for found in (borrowed.alignment(published, PROFILE), borrowed.swept(published, PROFILE)):
        assert found == borrowed.Source(published, PROFILE)


def test_a_profile_that_never_was_published_borrows_from_the_books_own(published, tmp_path):
    found = borrowed.alignment(tmp_path / "none", "kimi-k2.5-8x-rtx-pro-6000")
    assert found.profile == book.committed_profile() and found.mark


def test_nothing_published_is_nothing_borrowed(own, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", tmp_path / "nowhere")
    assert borrowed.alignment(own, PROFILE) == borrowed.Source(own, PROFILE)


def test_borrowed_figures_in_prose_say_whose_they_are(own, published):
    data = alignment.load(own, PROFILE)
    assert data.mark and not data.drift.empty
    values = alignment.glue_values(data.drift, data.mark)
    assert all(value.endswith("(published run)") for value in values.values())


def test_a_mark_is_shown_and_no_mark_shows_nothing(monkeypatch):
    shown = []
    monkeypatch.setattr(notebook, "display", shown.append)
    notebook.show_mark("")
    notebook.show_mark(borrowed.mark("a machine", PROFILE))
    assert len(shown) == 1 and 'class="borrowed"' in shown[0].data
