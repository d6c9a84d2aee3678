"""The one line on the terminal that follows a report: how far it is and how much time is left."""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from runners.core import format

QUIET_S = 10  # a log that is no terminal gets a new line at most this often
START_LINE = "\r\033[K"  # back to the first column, then clear what was printed there


class ProgressLine:
    """Reads the event file as it grows and keeps one line on the terminal up to date.

    measuring_s: seconds that measuring is expected to take until the campaign itself says so; after_s: seconds of
    analysis and book after it.
    """

    def __init__(self, events: Path, measuring_s: float, after_s: float):
        self._handle = open(events)  # noqa: SIM115 - read as long as the report runs
        self._began = self._said = time.monotonic()
        self._to_do_s, self._after_s = measuring_s, after_s
        self._decided: tuple[int, int] | None = None
        self._cells, self._last_line = 0, 0.0
        self._now = "starting"
        self.ended_at: float | None = None  # when measuring was over
        self.spent: Counter[str] = Counter()  # seconds by kind of work: start, cell, book, ...

    def left(self) -> float:
        """Seconds still to go: of measuring as the campaign foretold it last, then of analysis and book."""
        now = time.monotonic()
        if self.ended_at is not None:
            return max(self._after_s - (now - self.ended_at), 0.0)
        return max(self._to_do_s - (now - self._said), 0.0) + self._after_s

    def show(self, last: bool = False) -> None:
        """Read new events and print the line: over itself on a terminal, as a new line elsewhere."""
        fresh = self._read()
        far = f"{self._cells} cells" if self._decided is None else "{} of {} points decided".format(*self._decided)
        left = "done" if last else f"about {format.minutes(self.left())} left"
        words = f"[{far} · {(time.monotonic() - self._began) / 60:.1f} min · {left}] {self._now}"
        if sys.stdout.isatty():
            print(f"{START_LINE}{words[:160]}", end="\n" if last else "", flush=True)
        elif last or (fresh and time.monotonic() - self._last_line > QUIET_S):
            self._last_line = time.monotonic()
            print(words, flush=True)

    def _read(self) -> bool:
        """Take in the new events; True when the line has changed."""
        fresh = False
        for line in self._handle:
            event = json.loads(line)
            if event["kind"] == "span":
                self.spent[event["what"]] += event["seconds"]
            else:
                fresh = True
                self._take(event)
        return fresh

    def _take(self, event: dict[str, Any]) -> None:
        """One event of kind say, cell or campaign. A void cell keeps a line of its own: it must not scroll past."""
        if event["kind"] == "say":
            self._now = event["text"]
            if ": void: " in self._now or "not measured here" in self._now:
                print(f"{START_LINE if sys.stdout.isatty() else ''}  {self._now}", flush=True)
        elif event["kind"] == "campaign":
            self._take_campaign(event)
        elif event["state"] == "ends":
            self._cells += 1
        else:
            self._now = event["label"]

    def _take_campaign(self, event: dict[str, Any]) -> None:
        if event["state"] == "ends":
            self.ended_at, self._now = time.monotonic(), "analysis and book"
            return
        self._to_do_s, self._said = event["to_do_s"], time.monotonic()
        if event["state"] == "look":
            self._decided = event["decided"], event["points"]
