"""Server-sent events, read as the HTML standard says (html.spec.whatwg.org, "Interpreting an event stream").

Lines end with LF, CR LF or CR; an event's `data` may have several lines; comments (`: ping`) and other fields hold
nothing of an answer. Engines send one JSON object an event, and `[DONE]` at the end.

An object that is whole is handed on with its line, and does not wait for the empty line that ends its event: that line
may come with the next token.
"""

from typing import Any

from runners.core import json_text
from runners.core.one_line import one_line

DONE = b"[DONE]"
_BOM = b"\xef\xbb\xbf"
Event = dict[str, Any]


class EventStream:
    """Takes the bytes of a stream as they come and gives the JSON objects that they complete.

    done: the stream was ended as the protocol says. fault: the first event that is no JSON object, in words.
    """

    def __init__(self) -> None:
        self.done = False
        self.fault: str | None = None
        self._line: list[bytes] = []  # pieces of a line that has not ended
        self._data: list[bytes] = []  # lines of an event that are no object by themselves
        self._after_cr = False  # the bytes so far ended with CR: an LF that follows belongs to it
        self._begun = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._line.append(chunk)
            return []
        self._after_cr = chunk.endswith(b"\r")
        lines = b"".join([*self._line, chunk]).splitlines()  # of bytes: at LF, CR LF and CR alone
        self._line = [] if chunk.endswith((b"\n", b"\r")) else [lines.pop()]
        found: list[Event] = []
        for line in lines:
            self._take(line, found)
        return found

    def close(self) -> list[Event]:
        """The events of a last line, or of a last event, that the connection's end has completed."""
        found: list[Event] = []
        if self._line:
            self._take(b"".join(self._line), found)
        # What was cut in two is no fault of its own: the stream ended early.
        event = _object(b"\n".join(self._data)) if self._data else None
        self._line, self._data = [], []
        return found if event is None else [*found, event]

    def _take(self, line: bytes, found: list[Event]) -> None:
        if not self._begun:
            line, self._begun = line.removeprefix(_BOM), True
        if not line:
            self._end_event(found)
        elif line.startswith(b"data:"):
            data = line[5:].strip()
            if data == DONE:
                self.done = True
            elif data:
                event = None if self._data else _object(data)
                if event is None:
                    self._data.append(data)
                else:
                    found.append(event)

    def _end_event(self, found: list[Event]) -> None:
        if not self._data:
            return
        data = b"\n".join(self._data)
        event = _object(data) if len(self._data) > 1 else None  # a single line was tried already
        self._data = []
        if event is not None:
            found.append(event)
        elif self.fault is None:
            shown = one_line(data[:60].decode(errors="replace"))
            self.fault = f"an event of the stream is no JSON object: {shown}"


def ends(chunk: bytes) -> bool:
    """Do these bytes hold the line that ends a stream? An answer's text may speak of `[DONE]` too."""
    return any(line.startswith(b"data:") and line[5:].strip() == DONE for line in chunk.splitlines())


def _object(data: bytes) -> Event | None:
    try:
        event = json_text.loads(data)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
