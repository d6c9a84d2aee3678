"""The drafter's algorithm, in the environment that has torch: batched chains, checkpoint layout, replay's walk."""

import subprocess
from pathlib import Path

from runners import environments
from runners.engines import SCRIPTS


def test_batched_chains_equal_drafting_one_token_at_a_time(tmp_path):
    python = environments.ensure("reference")
    checks = Path(__file__).with_name("eagle3_checks.py")
    done = subprocess.run([python, checks, SCRIPTS, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "ok"
