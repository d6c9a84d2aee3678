"""Progress: each step says what it does and how long it took, to the terminal and to an event file.

`specverdict report` names the file in SPECVERDICT_EVENTS; notebooks run by papermill inside it
append to the same file, and one line on the terminal follows it.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

VARIABLE = "SPECVERDICT_EVENTS"
Progress = Callable[[str], None]  # takes one line of words, as `say` does


def emit(kind: str, **facts) -> None:
    """Append one event; kinds: say, span, cell. Without an event file, words go to standard error."""
    path = os.environ.get(VARIABLE)
    if path:
        line = json.dumps({"kind": kind, "at": time.time()} | facts)
        with open(path, "a") as handle:  # one short write: lines of several processes do not mix
            handle.write(line + "\n")
    elif kind == "say":
        print(facts["text"], file=sys.stderr, flush=True)


def say(text: str) -> None:
    emit("say", text=text)


@contextmanager
def span(what: str, **facts) -> Iterator[None]:
    """Account for the time of a step: what = start, warm-up, cell, reference, analysis, book."""
    began = time.perf_counter()
    try:
        yield
    finally:
        emit("span", what=what, seconds=time.perf_counter() - began, **facts)
