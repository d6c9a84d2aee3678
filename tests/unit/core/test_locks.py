"""Locks hold between processes and are gone with the process that held them."""

import subprocess
import sys

import pytest

from runners.core import locks
from runners.core.errors import UserError
from runners.core.paths import ROOT

HOLD = "import sys; from pathlib import Path; from runners.core import locks\n"


def other_process(code, path):
    """A process that has printed that it holds its lock."""
    argv = [sys.executable, "-c", HOLD + code, str(path)]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout.readline() == "held\n"
    return child


def test_a_second_campaign_in_a_folder_is_refused_until_the_first_is_gone(tmp_path):
    code = "with locks.alone(Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
    child = other_process(code, tmp_path / "runs")
    with pytest.raises(UserError, match="Another run is measuring into"), locks.alone(tmp_path / "runs"):
        pass
    child.kill()  # not even an orderly end is needed
    child.wait()
    with locks.alone(tmp_path / "runs"):
        pass


def test_a_second_maker_waits_for_the_first(tmp_path):
    made = tmp_path / "made"
    code = (
        "with locks.locked(Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read(1)\n"
        f"    Path({str(made)!r}).write_text('whole')"
    )
    child = other_process(code, tmp_path / "sub" / "x.lock")
    child.stdin.write("x")
    child.stdin.close()
    with locks.locked(tmp_path / "sub" / "x.lock"):
        assert made.read_text() == "whole"
    child.wait()
