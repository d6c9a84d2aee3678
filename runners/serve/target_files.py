"""The target as files: fetched by pinned version, checked by hash, dequantised once."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from runners.core import locks, paths
from runners.core.errors import UserError
from runners.core.hashes import noted_sha256, sha256
from runners.core.paths import SCRIPTS
from runners.core.progress import Progress, quiet
from runners.engines import environments
from runners.engines.engine import Form
from runners.profiles.schema import Target
from runners.serve.made_folder import make_once


def gguf_path(target: Target) -> Path:
    """Where a packaged target's GGUF file is, or will be."""
    return _folder(target) / Path(target.file_in_package or "").name


def folder_path(target: Target) -> Path:
    """Where its Hugging Face folder is, or will be; another one for another version of the script that makes it."""
    return _folder(target) / f"hf-fp32-{sha256(SCRIPTS / 'dequantise.py')[:6]}"


def _folder(target: Target) -> Path:
    return paths.cache() / "models" / (target.file_sha256 or "")[:12]


def forms(target: Target) -> tuple[Path | None, Path | None]:
    """(GGUF file, Hugging Face folder): where they are, or will be; None where there is no such form."""
    if target.path is None and target.package is None:
        return None, None  # of a server that runs already, somewhere else perhaps
    if target.path is None:
        return gguf_path(target), folder_path(target) if target.dequantised else None
    if target.path.endswith(".gguf"):
        return Path(target.path), None
    return Path(target.gguf.path) if target.gguf else None, Path(target.path)


def bytes_of(target: Target, form: Form) -> int:
    """Bytes on disk of the form that an engine serves; 0: unknown."""
    return target.gguf.bytes_on_disk if target.gguf is not None and form == "gguf" else target.bytes_on_disk


def fetch(target: Target, progress: Progress = quiet) -> Path:
    """The target's GGUF file out of its pinned package. Both hashes are checked, nothing is installed. Idempotent.

    UserError when the package cannot be fetched or a hash differs from the profile's.
    """
    path = gguf_path(target)
    if path.is_file():
        if path.stat().st_size != target.bytes_on_disk or noted_sha256(path) != target.file_sha256:
            raise UserError(f"{path} is not the target the profile names (its hash differs); delete it and run again.")
        return path
    with locks.locked(path.with_suffix(".lock")):
        if path.is_file():  # another process fetched it while we waited
            return path
        progress(f"target {target.name}: fetching {target.package}")
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:  # on the same disk, so that it can be renamed
            wheel = _download(target, Path(scratch))
            _must_have_hash(wheel, target.package_sha256)
            with zipfile.ZipFile(wheel) as archive:
                inside = Path(archive.extract(target.file_in_package or "", scratch))
            _must_have_hash(inside, target.file_sha256)
            os.replace(inside, path)
    return path


def _download(target: Target, folder: Path) -> Path:
    """The package's wheel, by pip, so that a mirror or a proxy that the user configured is used."""
    flags = ["--no-deps", "--no-input", "--no-color", "-q", "-d", str(folder)]
    argv = [sys.executable, "-m", "pip", "download", *flags, target.package or ""]
    done = subprocess.run(argv, capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        why = environments.explain(f"target {target.name}", done.stderr, folder.parent)
        raise UserError(f"{target.package} could not be fetched. {why}")
    return wheels[0]


def _must_have_hash(file: Path, wanted: str | None) -> None:
    if (found := sha256(file)) != wanted:
        raise UserError(f"{file.name} has the hash {found[:16]}…, not the profile's {wanted}.")


def dequantised(gguf: Path, target: Target, progress: Progress = quiet) -> Path:
    """The Hugging Face folder of the same weights in fp32 (scripts/dequantise.py), for engines that need one."""
    path = folder_path(target)
    if not path.is_dir():
        python = environments.ensure("reference", progress)
        progress(f"target {target.name}: dequantising to fp32, once")
        script = str(SCRIPTS / "dequantise.py")
        make_once(path, lambda out: [str(python), script, str(gguf), str(out)], "The fp32 folder")
    return path
