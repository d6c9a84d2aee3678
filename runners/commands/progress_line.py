"""The one line on the terminal that follows a report: how far it is and how long is left."""

import json
import sys
import time
from collections import Counter
from pathlib import Path

from runners.core import format


class ProgressLine:
    """Reads the event file as it grows and keeps one line on the terminal up to date.

    cells: label -> seconds it is expected to take; expected_s: all of them with starts and warm-ups.
    """

    def __init__(self, events: Path, cells: dict[str, float], expected_s: float):
        self._handle = open(events)  # noqa: SIM115 - read as long as the report runs
        self._cells, self._beside = cells, max(expected_s - sum(cells.values()), 0.0)
        self._began, self._last_line = time.monotonic(), 0.0
        self._took: dict[str, float] = {}
        self._now = "starting"
        self.spent: Counter[str] = Counter()

    def left(self) -> float:
        """Seconds still to go: what is expected, corrected by how the finished cells compared with it."""
        done = sum(self._cells.get(label, 0.0) for label in self._took)
        total = sum(self._cells.values())
        pace = sum(self._took.values()) / done if len(self._took) >= 3 and done > 0 else 1.0
        return (total - done) * pace + (self._beside * (1 - done / total) if total else 0.0)

    def show(self, last: bool = False) -> None:
        fresh = self._read()
        words = (
            f"[{len(self._took)}/{len(self._cells)} cells · {(time.monotonic() - self._began) / 60:.1f} min · "
            f"about {format.minutes(max(0.0, self.left()))} left] {self._now}"
        )
        if sys.stdout.isatty():
            print(f"\r\033[K{words[:160]}", end="\n" if last else "", flush=True)
        elif last or (fresh and time.monotonic() - self._last_line > 10):
            self._last_line = time.monotonic()
            print(words, flush=True)

    def _read(self) -> bool:
        """Take in what is new; True when the line has something new to say."""
        fresh = False
        for line in self._handle:
            event = json.loads(line)
            if event["kind"] == "span":
                self.spent[event["what"]] += event["seconds"]
                continue
            fresh = True
            if event["kind"] == "say":
                self._now = event["text"]
                if ": void: " in self._now or "not measured here" in self._now:
                    print(f"\r\033[K  {self._now}" if sys.stdout.isatty() else f"  {self._now}", flush=True)
            elif event["state"] == "ends":
                self._took[event["label"]] = event["seconds"]
            else:
                self._now = event["label"]
        return fresh
