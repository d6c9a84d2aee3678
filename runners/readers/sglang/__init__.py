"""SGLang: its log (log.py, decode_lines.py, counts.py) and its answers over HTTP (http.py), under one name.

Nothing is computed here: this collects the functions that every reader has (readers/registry.py lists them).
"""

from runners.readers.sglang.decode_lines import acceptance_of
from runners.readers.sglang.http import counters_from_meta_info, read_counters, read_server_info
from runners.readers.sglang.log import (
    PHASES,
    counts_from_log,
    first_error,
    phase_of,
    read_log,
    tracker,
)

__all__ = [
    "PHASES",
    "acceptance_of",
    "counters_from_meta_info",
    "counts_from_log",
    "first_error",
    "phase_of",
    "read_counters",
    "read_log",
    "read_server_info",
    "tracker",
]
