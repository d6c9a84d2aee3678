"""How well a drafter guesses on given text, without training it."""

import json
import shutil
from pathlib import Path

from runners.core.progress import Progress
from runners.drafter import train
from runners.profiles.profile import Profile
from runners.serve import scripts


def judge(profile: Profile, target: Path, drafter: Path, sequences: Path, states: Path, say: Progress = print) -> dict:
    """How well a drafter guesses what a target chooses on given text: top1, survival, accept_length.

    Counted from every position of the sequences marked as held out. The text is given, whatever the target would write.
    """
    request = states / "judge.json"
    request.write_text(json.dumps(settings(profile, target, drafter, sequences, states)))
    scripts.run_script("train_drafter", [request], say)
    record = json.loads((states / "judged" / "history.json").read_text())
    shutil.rmtree(states / "judged")  # a copy of the drafter's weights, which nobody needs
    return record["history"][0]


def settings(profile: Profile, target: Path, drafter: Path, sequences: Path, states: Path) -> dict:
    """Settings of scripts/train_drafter.py that train nothing: no epoch, from the drafter's own weights."""
    return train.numbers(profile.required_training()) | {
        "target": str(target),
        "sequences": str(sequences),
        "states": str(states),
        "output": str(states / "judged"),
        "start": str(drafter),
        "config": train.config_of(target, profile.required_training().boundaries),
        "epochs": 0,
    }
