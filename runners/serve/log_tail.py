"""The lines that a growing log gained since the last look."""

import re
from collections.abc import Iterator
from pathlib import Path

_LINE_END = re.compile(rb"\r\n|\r|\n")
_CHUNK = 1 << 20


class LogTail:
    """The lines a log gained since `offset` (bytes); a progress bar's carriage returns end lines too.

    Read by pieces and never twice: a server's log can be large.
    """

    def __init__(self, path: Path, offset: int = 0):
        self._path, self._offset, self._rest = path, offset, b""

    def __iter__(self) -> Iterator[str]:
        """Every whole line there is by now; what has no end yet waits for the next time."""
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
        """As above, and the last line although it has no end."""
        yield from self
        if self._rest:
            yield self._rest.decode(errors="replace")
