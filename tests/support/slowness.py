"""How slow this machine is just now: tests about time scale their budgets by it, so that other work fails none."""

import functools
import subprocess
import sys
import time

NOMINAL_S = 0.3  # what the start below takes on two quiet cores, with room to spare
WAIT_S = 60.0  # the most a test waits for something that must happen: reached only when it does not


@functools.cache
def slowness() -> float:
    """1.0 on a quiet machine, up to 6.0: by the time a small Python program takes to start."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-I", "-c", "import argparse, json, http.server"], check=True)
    return min(6.0, max(1.0, (time.monotonic() - began) / NOMINAL_S))


def wait_for(condition, seconds: float = WAIT_S) -> bool:
    """Whether the condition came true; asked twenty times a second."""
    until = time.monotonic() + seconds
    while not (held := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    return bool(held)
