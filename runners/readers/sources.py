"""Where texts come from: files, folders, compressed files, standard input; opened here and nowhere else in `read`.

A compressed file is recognised by its first bytes, whatever its name is.
"""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from runners.core.errors import UserError

STDIN = "-"
MOST_FILES = 200  # of a folder: more are no folder of one server's texts
_HEAD = 4096  # bytes by which a file's kind is known
Opener = Callable[[Path, str], TextIO]  # (path, encoding)


def _plain(path: Path, encoding: str) -> TextIO:
    return open(path, encoding=encoding, errors="replace")


_OPENERS: dict[bytes, Opener] = {  # who calls one closes the file
    b"\x1f\x8b": lambda path, encoding: gzip.open(path, "rt", encoding=encoding, errors="replace"),  # noqa: SIM115
    b"BZh": lambda path, encoding: bz2.open(path, "rt", encoding=encoding, errors="replace"),  # noqa: SIM115
    b"\xfd7zXZ\x00": lambda path, encoding: lzma.open(path, "rt", encoding=encoding, errors="replace"),  # noqa: SIM115
}
_ELSE = {
    b"PK\x03\x04": "a zip archive; unpack it, and give the text in it",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it, and give the text in it",
    b"PAR1": "a Parquet file, and no text; give a log or a saved /metrics text",
}
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}  # Windows shells write the first


@dataclass(frozen=True)
class Source:
    """One text. name: as the person gave it. path: of a file; kept: of what cannot be opened again (standard input, an
    answer over HTTP). at: when it was written or fetched, seconds since 1970; None where that is not known.
    """

    name: str
    path: Path | None = None
    kept: str | None = None
    at: float | None = None

    def lines(self) -> Iterator[str]:
        """The lines, each with its end; may be called again. UserError when the file cannot be read."""
        if self.path is None:
            yield from io.StringIO(self.kept or "")
            return
        try:
            with _opened(self.path) as text:
                yield from text
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise UserError(f"{self.name} must be a whole compressed file, and it is cut off or damaged.") from error
        except OSError as error:
            why = error.strerror or str(error)
            raise UserError(f"{self.name} cannot be read ({why}); give a log or a saved /metrics text.") from error

    def text(self) -> str:
        """All of it."""
        return "".join(self.lines())


def _opened(path: Path) -> TextIO:
    """The file, decompressed and decoded. UserError where it is no text."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    for mark, what in _ELSE.items():
        if head.startswith(mark):
            raise UserError(f"{path} is {what}.")
    opener = next((o for mark, o in _OPENERS.items() if head.startswith(mark)), _plain)
    if opener is not _plain:
        with opener(path, "latin-1") as inner:  # a character a byte
            head = inner.read(_HEAD).encode("latin-1")
    encoding = next((e for mark, e in _MARKS.items() if head.startswith(mark)), "utf-8")
    if encoding != "utf-16" and head.count(b"\0") * 10 > len(head):  # a power cut leaves some in a log
        raise UserError(f"{path} is not a text; give a log or a saved /metrics text.")
    return opener(path, encoding)


def of(name: str) -> list[Source]:
    """The texts behind a word of the command line: a file, each file of a folder (by name), or "-".

    UserError when there is none.
    """
    if name == STDIN:
        return [of_stdin()]
    path = Path(name)
    if path.is_dir():
        return _of_folder(path)
    if not path.is_file():
        raise UserError(
            f"There is no file {name}; give a log, a saved /metrics text or a saved /server_info, a folder of them, "
            "an address of /metrics that begins with http://, or - for standard input."
        )
    return [_of_file(path)]


def of_stdin() -> Source:
    """What is piped in, read to its end. UserError when nothing is."""
    if sys.stdin.isatty():
        raise UserError("- reads standard input, and nothing is piped in; write: COMMAND | specverdict read -")
    kept = sys.stdin.buffer.read().decode("utf-8-sig", errors="replace")
    return Source("standard input", kept=kept)


def _of_file(path: Path) -> Source:
    return Source(str(path), path=path, at=path.stat().st_mtime)


def _of_folder(folder: Path) -> list[Source]:
    """The files of a folder, not of the folders in it."""
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    if not files:
        raise UserError(f"There is no file in the folder {folder}; give one with logs or saved /metrics texts.")
    if len(files) > MOST_FILES:
        raise UserError(f"The folder {folder} has {len(files)} files; name those that are of one server.")
    return [_of_file(p) for p in files]
