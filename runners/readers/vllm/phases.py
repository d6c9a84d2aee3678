"""vLLM's load phases: the lines that begin them, and the lines that tell how long one took."""

import re

from runners.readers.records import Phases, PhaseTracker, match_phase

CAPTURING = "capturing graphs"
PHASES: Phases = [
    ("importing", re.compile(r"\] non-default args: |vLLM API server version")),
    ("starting ranks", re.compile(r"\] Initializing an? (?:V1 )?LLM engine")),
    (
        "loading weights",
        re.compile(r"\] Starting to load model |Loading \w+ checkpoint shards:|Multi-thread loading \w*shards:"),
    ),
    # The CPU build prints this for the n-gram drafter too, which loads nothing.
    ("loading drafter", re.compile(r"\] Loading drafter model")),
    (
        "profiling",
        re.compile(
            r"\] (?:Model loading took|Warming up model for the compilation|Available KV cache memory"
            r"|(?:GPU|CPU) KV cache size|Explicitly set \()"
        ),
    ),
    # A log without progress bars has a line for the end of this phase only.
    (CAPTURING, re.compile(r"Capturing CUDA graphs? |Capturing CUDA graphs?\b.*%\||Graph capturing finished in ")),
    (
        "starting server",
        re.compile(r"\] Starting vLLM (?:API )?server |INFO: +Waiting for application startup"),
    ),
    ("ready", re.compile(r"INFO: +Application startup complete")),
]
phase_of = match_phase(PHASES)

# The phase, and the seconds that it took as printed at its end.
_TOOK = [
    (CAPTURING, re.compile(r"Graph capturing finished in (\d+(?:\.\d+)?) s")),
    ("loading weights", re.compile(r"Model loading took .*?(\d+(?:\.\d+)?) ?s(?:ec\w*)?\b")),
    ("loading weights", re.compile(r"Loading (?:model )?weights took (\d+(?:\.\d+)?) s")),
]


def tracker() -> PhaseTracker:
    """Follows the load phases of one log, line by line."""
    return PhaseTracker(phase_of, first="importing")


def note_seconds(phases: PhaseTracker, body: str) -> None:
    """If this line tells how long a phase took, write it to the phase."""
    for name, form in _TOOK:
        if found := form.search(body):
            phases.lasted(name, float(found[1]))
