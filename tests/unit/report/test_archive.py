"""Runs packed into one file and read again; a file that holds anything else is refused."""

import io
import tarfile

import pytest

from runners.analyse import results
from runners.core import paths
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report import archive as report_archive


def test_an_archive_is_read_as_runs_are(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    out = report_archive.share(load("lab-cpu"), paths.PUBLISHED_RUNS, tmp_path / "runs.tar.gz")
    assert not (paths.PUBLISHED_RUNS / "lab-cpu" / "profile.yaml").exists()
    root = report_archive.runs_root(out)
    assert report_archive.profile_of(root) == "lab-cpu" and (root / "lab-cpu" / "profile.yaml").is_file()
    assert len(results.cells(root, "lab-cpu")) == len(results.cells("published", "lab-cpu"))
    assert report_archive.runs_root(out) == root


def packed(tmp_path, name, kind=tarfile.REGTYPE):
    place = tmp_path / "odd.tar.gz"
    with tarfile.open(place, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.size, info.linkname = kind, 2 if kind == tarfile.REGTYPE else 0, "/etc/passwd"
        archive.addfile(info, io.BytesIO(b"{}"))
    return place


@pytest.mark.parametrize(
    "name, kind, said",
    [
        ("p/run.sh", tarfile.REGTYPE, "other things than runs"),
        ("p/cells.jsonl", tarfile.SYMTYPE, "other things than runs"),
        ("../../cells.jsonl", tarfile.REGTYPE, "cannot be unpacked"),
    ],
)
def test_an_archive_that_holds_something_else_is_not_unpacked(tmp_path, monkeypatch, name, kind, said):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    with pytest.raises(UserError, match=said):
        report_archive.unpack(packed(tmp_path, name, kind))
    assert not list((tmp_path / "build").rglob("cells.jsonl"))


def test_a_broken_or_missing_archive_is_one_sentence(tmp_path):
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"nothing")
    for place, said in ((broken, "cannot be unpacked"), (tmp_path / "none.tar.gz", "No archive")):
        with pytest.raises(UserError, match=said):
            report_archive.unpack(place)
    with pytest.raises(UserError, match="does not end in .tar.gz"):
        report_archive.share(load("lab-cpu"), paths.PUBLISHED_RUNS, tmp_path / "runs.zip")
