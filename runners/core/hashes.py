"""SHA-256 of files; a large file's hash is kept in the cache and computed again only when the file changed."""

import hashlib
from pathlib import Path

from runners.core import paths


def sha256(path: Path) -> str:
    """64 hex digits."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def noted_sha256(path: Path) -> str:
    """`sha256`, kept in the cache; computed again when the file's path, size or modification time changed."""
    # A target of some gigabytes takes a minute to read, and a cell's key asks for its hash again and again.
    stat = path.stat()
    facts = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    note = paths.cache() / "hashes" / hashlib.sha256(facts.encode()).hexdigest()[:24]
    if not note.is_file():
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(sha256(path))
    return note.read_text()
