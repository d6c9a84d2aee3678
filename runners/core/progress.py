"""Progress: each step reports what it does and how long it took, to the terminal and to an event file.

`specverdict report` names the file in SPECVERDICT_EVENTS. Notebooks that papermill runs inside it append to the same
file, and one line on the terminal follows it.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from runners.core import secrets

VARIABLE = "SPECVERDICT_EVENTS"
Progress = Callable[[str], None]  # takes one line of text, as `say` does


def emit(kind: str, **facts: Any) -> None:
    """Append one event, secrets masked; kinds: say, span, cell, campaign.

    Without an event file, the text of a `say` goes to standard error.
    """
    path = os.environ.get(VARIABLE)
    if path:
        line = secrets.masked(json.dumps({"kind": kind, "at": time.time()} | facts))
        with open(path, "a") as handle:  # one short write: lines of several processes do not mix
            handle.write(line + "\n")
    elif kind == "say":
        print(secrets.masked(facts["text"]), file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Show one line to whoever watches the run."""
    emit("say", text=text)


def quiet(text: str) -> None:
    """A `Progress` that shows nothing."""


@contextmanager
def span(what: str, **facts: Any) -> Iterator[None]:
    """Record how long a step takes, also when it fails. what: start, cell, reference, analysis, book."""
    began = time.perf_counter()
    try:
        yield
    finally:
        emit("span", what=what, seconds=time.perf_counter() - began, **facts)
