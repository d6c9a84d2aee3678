"""The terminal: what a command prints, without the values of secrets."""

import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from runners.core import secrets


class MaskedStream:
    """A text stream that leaves out the value of each known secret of what is written to it; else as the stream is."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(secrets.masked(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guard() -> None:
    """From now on this process prints no secret, a traceback included. Idempotent."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, MaskedStream):
            setattr(sys, name, cast(TextIO, MaskedStream(stream)))
