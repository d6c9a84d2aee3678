"""How well a drafter guesses on given text, without training it."""

import json
import shutil
from pathlib import Path

from runners.drafter import train
from runners.profiles.profile import Profile
from runners.serve import scripts


def judge(profile: Profile, target: Path, drafter: Path, sequences: Path, states: Path, say=print) -> dict:
    """How well a drafter guesses what a target chooses on given text, untrained: top1, survival, accept_length.

    Judged from every position of the sequences marked held out, on the same text whatever the target would write.
    """
    settings = train.numbers(profile.training) | {
        "target": str(target),
        "sequences": str(sequences),
        "states": str(states),
        "output": str(states / "judged"),
        "start": str(drafter),
        "config": train.config_of(target, profile.training.boundaries),
        "epochs": 0,
    }
    (states / "judge.json").write_text(json.dumps(settings))
    scripts.run_script("train_drafter", [states / "judge.json"], say)
    told = json.loads((states / "judged" / "history.json").read_text())
    shutil.rmtree(states / "judged")
    return told["history"][0]
