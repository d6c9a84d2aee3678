"""An engine of tests alone, as a plug-in: the stand-in program `fake_server.py` under the name `toy`."""

from pathlib import Path

FAKE = Path(__file__).with_name("fake_server.py")

ENGINE = f"""
from runners.engines.engine import Engine, NewProfile


def arguments(asked):
    flags = {{"model": asked.files.folder, "host": asked.host, "port": asked.port, "slots": asked.max_running_requests}}
    return flags | ({{"drafting": asked.method, "tokens": asked.k}} if asked.method else {{}})


ENGINE = Engine(
    name="toy",
    title="Toy",
    packages=("toy-engine",),
    program=({str(FAKE)!r},),
    serves="folder",
    arguments=arguments,
    drafting_flags=frozenset({{"drafting"}}),
    start_seconds=1,
    new_profile=NewProfile(lambda box: ({{"token-s": 0.006}}, {{}}), ngram_k=3),
)
"""

# It speaks vLLM's metrics and has phases of its own.
READER = """
import re

from runners.readers.records import PhaseTracker, match_phase
from runners.readers.vllm import acceptance_of, first_error, read_counters, read_log

PHASES = [("loading weights", re.compile("^loading weights")), ("warming up", re.compile("^warming up"))]
phase_of = match_phase(PHASES)


def tracker():
    return PhaseTracker(phase_of, first="loading weights")
"""


def write(folder: Path) -> Path:
    """The folder of plug-ins, for SPECVERDICT_PLUGINS."""
    for room, text in (("engines", ENGINE), ("readers", READER)):
        (folder / room).mkdir(parents=True)
        (folder / room / "toy.py").write_text(text)
    (folder / "engines" / "toy.txt").write_text("toy-engine==1\n")
    return folder
