"""Runs packed into one file and read again; a file that holds anything else is refused."""

import io
import tarfile

import pytest
import yaml

from runners.analyse import results
from runners.core import paths, secrets
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
        ("../../cells.jsonl", tarfile.REGTYPE, "which no runs have"),
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


def texts_of(place):
    with tarfile.open(place) as packed:
        return {m.name: packed.extractfile(m).read() for m in packed.getmembers() if m.isfile()}


def test_an_archive_holds_no_secret_and_no_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "_learnt", {})
    content = load("lab-cpu").model_dump(mode="json") | {"name": "mine"}
    content["configurations"]["vllm-base"]["flags"] |= {"api-key": "planted-key-1", "short-key": "pw"}
    content["configurations"]["vllm-base"]["env"] |= {"HF_TOKEN": "planted-key-2"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    folder = tmp_path / "mine" / "vllm-base"
    folder.mkdir(parents=True)
    (folder / "server.log").write_text("args: api_key=planted-key-1\n")  # of an earlier release, which did not mask it
    (tmp_path / "mine" / "notebooks").mkdir()
    (tmp_path / "mine" / "notebooks" / "verdict.ipynb").write_text("{}")
    found = texts_of(report_archive.share(load(str(tmp_path / "mine.yaml")), tmp_path, tmp_path / "mine.tar.gz"))
    assert set(found) == {"mine/profile.yaml", "mine/vllm-base/server.log"}
    assert found["mine/vllm-base/server.log"] == b"args: api_key=(not shown)\n"
    (tmp_path / "again.yaml").write_bytes(found["mine/profile.yaml"])
    chosen = load(str(tmp_path / "again.yaml")).configurations["vllm-base"]
    assert chosen.flags["api-key"] == chosen.flags["short-key"] == chosen.env["HF_TOKEN"] == secrets.NOT_SHOWN
