"""The book of a shared archive: its data, shown by our own notebooks."""

import json
import tarfile

import pytest
import synthetic_runs
import yaml

from runners.commands import build_book
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report import archive, book

PROFILE = synthetic_runs.PROFILE


def packed(tmp_path, name=PROFILE):
    """The archive of made-up runs, with a notebook that another person's release may have packed."""
    runs = synthetic_runs.write(tmp_path / "runs", repeats=1, prompts=4) / PROFILE
    (runs / "profile.yaml").write_text(yaml.safe_dump(load(PROFILE).model_dump(mode="json") | {"name": name}))
    (runs / "notebooks").mkdir()
    for page in (*book.ANALYSES, "run_vllm-base", "run_planted"):
        (runs / "notebooks" / f"{page}.ipynb").write_text(json.dumps({"cells": "PLANTED"}))
    out = tmp_path / "shared.tar.gz"
    with tarfile.open(out, "w:gz") as handle:
        handle.add(runs, PROFILE)
    return out


@pytest.fixture
def executed(monkeypatch):
    found = []
    monkeypatch.setattr(build_book, "execute", lambda pages, target: found.append((list(pages), target)))
    return found


def test_an_archives_notebooks_are_executed_again_and_never_shown(tmp_path, monkeypatch, executed):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    root = archive.runs_root(packed(tmp_path))
    assert build_book.shared(root).name == PROFILE
    ((pages, target),) = executed
    assert target == root / PROFILE / "notebooks" and not target.exists(), "nothing of theirs is left"
    names = [page.name for page in pages]
    assert (
        names[: len(book.ANALYSES)] == list(book.ANALYSES) and "run_vllm-base" in names and "run_planted" not in names
    )
    assert all(page.parameters["runs"] == str(root) for page in pages)


def test_an_archive_whose_profile_has_another_name_is_refused(tmp_path, monkeypatch, executed):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    with pytest.raises(UserError, match="profile other lies in a folder lab-cpu"):
        build_book.shared(archive.runs_root(packed(tmp_path, name="other")))
    assert not executed
