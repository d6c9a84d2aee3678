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

    cells: label -> seconds that the cell is expected to take; expected_s: all of them, with starts and warm-ups.
    """

    def __init__(self, events: Path, cells: dict[str, float], expected_s: float):
        self._handle = open(events)  # noqa: SIM115 - read as long as the report runs
        self._cells = cells
        self._starts_s = max(expected_s - sum(cells.values()), 0.0)  # starts and warm-ups
        self._began, self._last_line = time.monotonic(), 0.0
        self._took: dict[str, float] = {}
        self._now = "starting"
        self.spent: Counter[str] = Counter()  # seconds by kind of work: start, cell, book, ...

    def left(self) -> float:
        """Seconds still to go: what is expected, corrected by the pace of the finished cells."""
        done = sum(self._cells.get(label, 0.0) for label in self._took)
        total = sum(self._cells.values())
        # One or two cells say little about the pace of the rest.
        pace = sum(self._took.values()) / done if len(self._took) >= 3 and done > 0 else 1.0
        return (total - done) * pace + (self._starts_s * (1 - done / total) if total else 0.0)

    def show(self, last: bool = False) -> None:
        """Read new events and print the line: over itself on a terminal, as a new line elsewhere."""
        fresh = self._read()
        words = (
            f"[{len(self._took)}/{len(self._cells)} cells · {(time.monotonic() - self._began) / 60:.1f} min · "
            f"about {format.minutes(max(0.0, self.left()))} left] {self._now}"
        )
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
        """One event of kind say or cell. A void cell keeps a line of its own: it must not scroll past unseen."""
        if event["kind"] == "say":
            self._now = event["text"]
            if ": void: " in self._now or "not measured here" in self._now:
                print(f"{START_LINE if sys.stdout.isatty() else ''}  {self._now}", flush=True)
        elif event["state"] == "ends":
            self._took[event["label"]] = event["seconds"]
        else:
            self._now = event["label"]
