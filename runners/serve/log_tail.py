"""Follow a growing log: the lines it gained since the last time."""

import re
from collections.abc import Iterator
from pathlib import Path

_LINE_END = re.compile(rb"\r\n|\r|\n")
_CHUNK = 1 << 20


class LogTail:
    """Each iteration gives the lines that the log gained since the one before, the first time since `offset` (bytes).

    A progress bar's carriage returns end lines too. Read in pieces and never twice: a server's log can be large.
    """

    def __init__(self, path: Path, offset: int = 0):
        self._path, self._offset, self._rest = path, offset, b""

    def __iter__(self) -> Iterator[str]:
        """Every complete line so far; an incomplete one waits for the next iteration."""
        if not self._path.is_file():
            return
        with open(self._path, "rb") as handle:
            handle.seek(self._offset)
            while piece := handle.read(_CHUNK):
                self._offset += len(piece)
                *lines, self._rest = _LINE_END.split(self._rest + piece)
                for line in lines:
                    yield line.decode(errors="replace")

    def all_lines(self) -> Iterator[str]:
        """The same, and the last line although it is incomplete."""
        yield from self
        if self._rest:
            yield self._rest.decode(errors="replace")
