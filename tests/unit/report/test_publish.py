"""Publishing: what is copied, what is refused, and that a failed analysis leaves what stood there before."""

import nbformat
import pytest
import synthetic_runs

from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report import publish

PROFILE = synthetic_runs.PROFILE


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """(runs, published): made-up runs with a run page, and an empty place to publish to."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", tmp_path / "published")
    runs = synthetic_runs.write(tmp_path / "runs", repeats=1, prompts=4)
    notebooks = runs / PROFILE / "notebooks"
    notebooks.mkdir()
    nbformat.write(nbformat.v4.new_notebook(), notebooks / "run_campaign.ipynb")
    (runs / PROFILE / "vllm-base" / "scratch.tmp").write_text("half-written")
    return runs, tmp_path / "published"


def test_runs_are_copied_without_what_a_rebuild_does_not_need(folders, monkeypatch):
    analysed = []
    monkeypatch.setattr(publish, "_analyse", lambda profile, target: analysed.append(target))
    runs, published = folders
    assert publish.publish(load(PROFILE), runs) == 0
    assert analysed == [published / PROFILE]
    own = {path.name for path in (published / PROFILE / "vllm-base").iterdir()}
    assert {"cells.jsonl", "requests.parquet"} <= own and "scratch.tmp" not in own
    assert (published / PROFILE / "notebooks" / "run_campaign.ipynb").is_file(), (
        "the other pages are executed on what is published"
    )


def test_published_runs_are_only_analysed_again(folders, monkeypatch):
    analysed = []
    monkeypatch.setattr(publish, "_analyse", lambda profile, target: analysed.append(target))
    runs, published = folders
    publish.publish(load(PROFILE), runs)
    (published / PROFILE / "vllm-base" / "cells.jsonl").write_text("")
    publish.publish(load(PROFILE), published)
    assert len(analysed) == 2 and (published / PROFILE / "vllm-base" / "cells.jsonl").read_text() == ""


def test_a_failed_analysis_leaves_what_was_published_before(folders, monkeypatch):
    runs, published = folders
    before = published / PROFILE / "vllm-base"
    before.mkdir(parents=True)
    (before / "cells.jsonl").write_text("before\n")

    def fails(profile, target):
        raise RuntimeError("a chapter stopped")

    monkeypatch.setattr(publish, "_analyse", fails)
    with pytest.raises(RuntimeError, match="a chapter stopped"):
        publish.publish(load(PROFILE), runs)
    assert (before / "cells.jsonl").read_text() == "before\n" and not list(published.glob(".*"))


def test_runs_that_are_not_there_are_not_published(tmp_path):
    with pytest.raises(UserError, match="There are no runs of lab-cpu"):
        publish.publish(load(PROFILE), tmp_path)
