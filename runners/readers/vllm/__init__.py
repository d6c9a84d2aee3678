"""vLLM: its log (log.py, lines.py, phases.py, all_steps.py) and its answers over HTTP (http.py), under one name.

Nothing is computed here: this collects the functions that every reader has (readers/registry.py lists them).
"""

from runners.readers.vllm.all_steps import totals_of
from runners.readers.vllm.http import read_counters
from runners.readers.vllm.lines import acceptance_of
from runners.readers.vllm.log import first_error, read_log
from runners.readers.vllm.phases import PHASES, phase_of, tracker

__all__ = [
    "PHASES",
    "acceptance_of",
    "first_error",
    "phase_of",
    "read_counters",
    "read_log",
    "totals_of",
    "tracker",
]
