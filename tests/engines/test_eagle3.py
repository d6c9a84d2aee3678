"""The drafter's algorithm, in the environment that has torch: batched chains, checkpoint layout, replay's walk."""

import subprocess
from pathlib import Path

import pandas as pd
import pytest

from runners.core.paths import SCRIPTS
from runners.drafter import corpus, packed_sequences, target_drift
from runners.engines import environments
from runners.profiles import prompts
from runners.profiles.load import load

pytestmark = pytest.mark.slow


def test_batched_chains_equal_drafting_one_token_at_a_time(tmp_path):
    python = environments.ensure("reference")
    checks = Path(__file__).parents[1] / "support" / "eagle3_checks.py"
    done = subprocess.run([python, checks, SCRIPTS, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "ok"


def test_a_target_that_moved_away_costs_its_drafter_acceptance(tmp_path):
    profile, texts = load("lab-cpu"), pd.read_parquet(corpus.FOLDER / "answers.parquet")
    rows = texts[texts["part"] == "held-out"].head(3).to_dict("records")
    packed_sequences.pack(rows, tmp_path / "same.safetensors")
    chosen, text = prompts.load("chat").take(2), tmp_path / "same.safetensors"
    found = target_drift.measure(target_drift.DriftSpec(profile, "aligned", chosen, 12, text, tmp_path, (0.0, 0.3)))
    still, moved = found.iloc[0], found.iloc[1]
    assert (still["drift"], still["same_choice"]) == (0.0, 1.0) and still["steps"] > 0
    assert moved["drift"] > 0.3 and moved["same_choice"] < 0.5
    assert (
        moved["same_text_accept_length"] < still["same_text_accept_length"] and moved["agreement"] < still["agreement"]
    )
