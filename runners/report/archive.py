"""One file to share a result: `specverdict share` packs a profile's runs, `make book RUNS=FILE` reads them.

An archive holds <profile>/... as data/runs does, and the profile itself as <profile>/profile.yaml, without secrets.
Nothing in it is executed when it is read. It holds no notebooks, and those in an archive of an earlier release are not
shown: the book's pages are executed again, from our own notebooks on its data.
"""

import contextlib
import gzip
import hashlib
import io
import re
import shutil
import tarfile
import zlib
from pathlib import Path

import yaml

from runners.core import paths, secrets
from runners.core.errors import UserError
from runners.core.one_line import one_line
from runners.profiles.load import argument
from runners.profiles.profile import Profile

ENDING = ".tar.gz"
KEPT = (".jsonl", ".json", ".parquet", ".log", ".csv", ".ipynb", ".yaml")
PACKED = tuple(ending for ending in KEPT if ending != ".ipynb")
TEXTS = (".jsonl", ".json", ".log", ".csv", ".yaml")
LIMIT_BYTES = 2_000_000_000  # unpacked; a set of runs is never so large, a zip bomb may be
# Unpacked; a set of runs is never so large, one that was packed to fill a disk may be.
LIMIT_BYTES, MOST_FILES, DEEPEST = 2_000_000_000, 5_000, 6
LARGEST_HEADER, LARGEST_HEADERS = 1_000_000, 50_000_000  # bytes of one, of all together
NAME_OF_A_FILE = r"(?!\.)[\w.+=,@~ -]{1,200}"  # no sign that a terminal, a page or a shell would obey


def is_archive(where: str | Path) -> bool:
    """Whether a runs folder is given as an archive, by its ending."""
    return str(where).endswith(ENDING)


def share(profile: Profile, runs: Path, out: Path) -> Path:
    """Pack <runs>/<profile> into `out`; UserError without runs, or if `out` has another ending."""
    source = runs / profile.name
    if not source.is_dir():
        raise UserError(
            f"There are no runs of {profile.name} in {runs}; run `make report PROFILE={argument(profile.name)}` first."
        )
    if not is_archive(out):
        raise UserError(f"{out} does not end in {ENDING}; name the archive so.")
    part = out.with_name(out.name + ".part")
    definition = yaml.safe_dump(secrets.hidden(profile.model_dump(mode="json")), sort_keys=False).encode()
    try:
        with tarfile.open(part, "w:gz") as archive:
            _add(archive, tarfile.TarInfo(f"{profile.name}/profile.yaml"), definition)
            for path in sorted(source.rglob("*")):
                if path.is_file() and path.suffix in PACKED and path.name != "profile.yaml":
                    info = tarfile.TarInfo(f"{profile.name}/{path.relative_to(source)}")
                    info.mtime = int(path.stat().st_mtime)
                    _add(archive, info, path.read_bytes(), path.suffix in TEXTS)
        part.replace(out)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise UserError(f"{out} could not be written ({error.strerror}); give another path with --out.") from error
    return out


def _add(archive: tarfile.TarFile, info: tarfile.TarInfo, content: bytes, text: bool = True) -> None:
    """Add a file, a text masked, without who packed it: readers of a shared file need not know."""
    content = secrets.masked_bytes(content) if text else content
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


class _Unpacked(gzip.GzipFile):
    """A packed file that hands out no large piece at once: headers are small, and files are copied in small pieces.

    tarfile reads a header (a long name, its further fields, the map of a sparse file) as long as the file says it is.
    room: bytes that may still be read.
    """

    room = LARGEST_HEADERS

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes")
        self.room -= size
        if self.room < 0:
            raise tarfile.ReadError("its headers are too long")
        return super().read(size)


def _members(archive: Path, packed: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """What is packed, looked at one by one, before anything is written. UserError for anything that no runs hold."""
    members, total = list[tarfile.TarInfo](), 0
    for member in packed:
        parts = Path(member.name).parts
        total += member.size
        if len(members) >= MOST_FILES or total > LIMIT_BYTES:
            most = f"{MOST_FILES:,} files or {LIMIT_BYTES / 1e9:.0f} GB"
            raise UserError(f"{archive.name} holds more than {most}, which no runs do; it was not unpacked.")
        if not (member.isfile() and Path(member.name).suffix in KEPT) and not member.isdir():
            raise UserError(f"{archive.name} holds other things than runs; it was not unpacked.")
        if len(parts) > DEEPEST or not all(re.fullmatch(NAME_OF_A_FILE, part) for part in parts):
            shown = one_line(member.name, 60)
            raise UserError(f"{archive.name} holds a file with the name {shown!r}, which no runs have; not unpacked.")
        members.append(member)
    return members


def unpack(archive: Path) -> Path:
    """The folder that holds <profile>/..., unpacked once for each content. UserError for anything unsafe."""
    if not archive.is_file():
        raise UserError(f"No archive {archive}; give the file that `specverdict share` wrote.")
    with open(archive, "rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()[:12]
    folder = paths.BUILD / "archives" / digest
    if folder.is_dir():
        return folder
    scratch = folder.with_name(folder.name + ".part")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        with _Unpacked(archive) as plain, tarfile.open(fileobj=plain, mode="r:") as packed:
            members = _members(archive, packed)
            plain.room = LIMIT_BYTES
            packed.extractall(scratch, members, filter="data")
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
        shutil.rmtree(scratch, ignore_errors=True)
        raise UserError(f"{archive.name} cannot be unpacked ({one_line(str(error))}); ask for it again.") from error
    except UserError:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    scratch.replace(folder)  # in one step, so that a folder without .part is always complete
    return folder


def runs_root(where: str | Path) -> Path:
    """`paths.runs_root`, or the unpacked folder of an archive."""
    return unpack(Path(where)) if is_archive(where) else paths.runs_root(where)


def profile_of(folder: Path) -> str:
    """The one profile an unpacked archive holds; UserError when there is none or more."""
    found = sorted(p.parent.name for p in folder.glob("*/profile.yaml"))
    if len(found) != 1:
        raise UserError(f"The archive holds {len(found)} profiles; one is expected.")
    return found[0]
