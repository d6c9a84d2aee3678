"""Whether a log ends in waiting: the engine says so, again and again, and nothing has moved since."""

import re
from collections.abc import Callable
from datetime import datetime

from runners.readers.records import LogReading

LEAST = 60  # seconds of waiting without progress that are worth a word
_TIME = re.compile(r"(\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")


class Stall:
    """Follows the waiting of one log.

    The reader keeps the last line that showed progress and hands it in with each line of waiting: a stall is over as
    soon as that line is another one. So a busy server's lines cost nothing. `time_of` gives a line's own time.
    """

    def __init__(self, time_of: Callable[[str], str | None]) -> None:
        self._time_of = time_of
        self._moved: str | None = None
        self._what = self._first = self._last = ""
        self._seconds = 0

    def wait(self, what: str, line: str, seconds: int, moved: str) -> None:
        """A line that tells of `seconds` of waiting for `what`. moved: the last line that showed progress, or ""."""
        if moved is not self._moved:
            self._moved, self._first = moved, line
        self._what, self._last, self._seconds = what, line, seconds

    def conclude(self, reading: LogReading, moved: str) -> None:
        """Write `no_progress_since` and `waits_for` into `reading` if the log ends in waiting."""
        if moved is not self._moved or reading.outcome == "stopped":
            return
        since, first, last = (self._time_of(line) for line in (moved, self._first, self._last))
        seconds = max(seconds_between(since, last) or 0, (seconds_between(first, last) or 0) + self._seconds)
        if seconds < LEAST:
            return
        reading.no_progress_since = since or first or "the beginning of this text"
        waited = f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
        reading.waits_for = f"{self._what}, for {waited} or more"


def seconds_between(earlier: str | None, later: str | None) -> int | None:
    """Seconds between two times of a log, "MM-DD HH:MM:SS" in each; None where one is missing or they run backwards."""
    times = []
    for text in (earlier, later):
        found = _TIME.search(text or "")
        if not found:
            return None
        try:
            times.append(datetime.strptime(f"2000-{found[1]} {found[2]}", "%Y-%m-%d %H:%M:%S"))
        except ValueError:
            return None
    seconds = int((times[1] - times[0]).total_seconds())
    return seconds if seconds >= 0 else None
