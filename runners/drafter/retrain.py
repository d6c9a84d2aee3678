"""Trainings beside the published one: on other states, for a sibling of the target, on less text.

Each is made once for its settings, its text and the drafter it starts from, and kept in train.folder.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from runners.core import hashes
from runners.core.errors import UserError
from runners.drafter import card, corpus, packed_sequences, train
from runners.drafter.card import DRAFTERS
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.serve import drafter_files, model_files, scripts

SCALING = [15_000, 30_000, 60_000, 120_000]  # answer tokens trained on


def variant(profile: Profile, name: str, say: Callable[[str], None] = print) -> Path:
    """The published drafter trained on under a variant's conditions; returns its folder, made once.

    It shows what a drafter becomes that learnt from other states, other boundaries or a sibling of the target.
    """
    settled = profile.training
    chosen = settled.variants[name]
    text = corpus.FOLDER / "answers.parquet"
    facts = [
        chosen.model_dump_json(),
        str(settled.boundaries),
        hashes.sha256(text),
        drafter_files.digest(profile, "aligned"),
    ]
    work = train.folder(profile) / "variants" / f"{name}-{hashlib.sha256(' '.join(facts).encode()).hexdigest()[:12]}"
    if (work / "drafter" / "history.json").is_file():
        return work / "drafter"
    rows = pd.read_parquet(text)
    trained = rows[rows["part"] == "train"].head(chosen.answers)
    fits = trained["prompt_tokens"].map(len) + trained["answer_tokens"].map(len) <= 512  # llama.cpp's batch
    packed_sequences.pack(
        pd.concat([trained[fits], rows[rows["part"] == "held-out"].head(40)]).to_dict("records"),
        work / "seq.safetensors",
    )
    files = model_files.files(profile, None, say)
    target = files.folder
    if chosen.target_noise:
        target = work / "target"
        if not target.is_dir():
            scripts.run_script("perturb_target", [files.folder, target, chosen.target_noise, settled.seed], say)
    boundaries = ",".join(map(str, chosen.boundaries or settled.boundaries))
    scripts.run_script("capture_reference", [target, work / "seq.safetensors", work / "finals", boundaries], say)
    states = work / "finals"
    if chosen.states != "reference":
        states = work / "states"
        source = engine(chosen.states)
        if not (states / "manifest.json").is_file():
            words = [files.target(source.serves), work / "seq.safetensors", states, boundaries]
            scripts.run_script(source.capture_script, words, say, environment=source.name)
    settings = train.numbers(settled) | {
        "target": str(target),
        "sequences": str(work / "seq.safetensors"),
        "states": str(states),
        "finals": str(work / "finals"),
        "output": str(work / "drafter"),
        "start": str(DRAFTERS / "aligned"),
        # It is served with the boundaries it does not know were wrong.
        "config": train.config_of(files.folder, settled.boundaries),
        "epochs": chosen.epochs,
        "learning_rate": settled.learning_rate / 3,
    }
    (work / "settings.json").write_text(json.dumps(settings, indent=1))
    scripts.run_script("train_drafter", [work / "settings.json"], say)
    return work / "drafter"


def publish_variant(profile: Profile, name: str, say: Callable[[str], None] = print) -> int:
    """Train a variant if it is not there and copy it to data/drafters/<name>; UserError for an unknown one."""
    known = profile.training.variants if profile.training else {}
    if name not in known:
        raise UserError(f"Profile {profile.name} trains no variant '{name}'; it has: {', '.join(known) or 'none'}.")
    made, chosen = variant(profile, name, say), known[name]
    rows = {
        "training": f"the aligned drafter, {chosen.epochs:g} epochs more on {chosen.answers:,} answers",
        "accept length from every position, held out": None,
        "top-1 by draft step, held out": None,
        "survival by draft step, held out": None,
    }
    if chosen.target_noise:
        noise = f"{chosen.target_noise:g} of each matrix's standard deviation, seed {profile.training.seed}"
        rows["trained for"] = f"a sibling of the target: its layers moved by noise, {noise}"
    if chosen.states != "reference":
        rows["aux states"] = f"{engine(chosen.states).title}'s kernels"
    if chosen.boundaries:
        rows["aux states"] = ", ".join(f"input of layer {b}" for b in chosen.boundaries)
    card.publish(profile, made, name, rows, say)
    return 0


def scaling(profile: Profile, say: Callable[[str], None] = print) -> int:
    """data/drafters/scaling.csv: the same training on less text; written after each size, so an interruption costs one.

    UserError when this machine has not trained the drafter itself: the smaller sizes are trained on the same states.
    """
    work = train.folder(profile)
    if not (work / "aligned.json").is_file():
        raise UserError("The drafter was not trained on this machine; run `make drafter` first.")
    rows = [_result(DRAFTERS / "aligned")]
    for tokens in SCALING:
        output = work / f"scaling-{tokens}"
        if not (output / "history.json").is_file():
            settings = json.loads((work / "aligned.json").read_text()) | train.numbers(profile.training)
            settings |= {"output": str(output), "train_tokens": tokens}
            output.mkdir(parents=True, exist_ok=True)
            (output / "settings.json").write_text(json.dumps(settings, indent=1))
            say(f"training on {tokens:,} answer tokens")
            scripts.run_script("train_drafter", [output / "settings.json"], say)
        rows.append(_result(output))
        table = pd.DataFrame(rows).sort_values("train_tokens")
        table.to_csv(DRAFTERS / "scaling.csv", index=False)
    return 0


def _result(place: Path) -> dict:
    """A training's size and its last held-out figures."""
    told = json.loads((place / "history.json").read_text())
    last = told["history"][-1]
    row = {"train_tokens": told["facts"]["train_tokens"], "steps": last["step"], "seconds": round(last["seconds"])}
    row |= {f"top1_step{i + 1}": round(t, 4) for i, t in enumerate(last["top1"])}
    return row | {"accept_length": round(last["accept_length"], 4)}
