"""SHA-256 of files; a large file's hash is noted in the cache and read again only when the file changed."""

import hashlib
from pathlib import Path

from runners.core import paths


def sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def noted_sha256(path: Path) -> str:
    """The file's hash, read once and noted in the cache; read again when its size or time changed."""
    stat = path.stat()
    facts = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    note = paths.cache() / "hashes" / hashlib.sha256(facts.encode()).hexdigest()[:24]
    if not note.is_file():
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(sha256(path))
    return note.read_text()
