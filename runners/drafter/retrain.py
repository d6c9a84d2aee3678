"""Trainings beside the published one: on other states, for a target moved by noise, on less text.

Each is trained once for its settings, its text and the drafter it starts from, and kept in train.folder.
"""

import hashlib
import json
from pathlib import Path

import pandas as pd

from runners.core import hashes
from runners.core.errors import UserError
from runners.core.progress import Progress
from runners.drafter import card, corpus, packed_sequences, train
from runners.drafter.card import DRAFTERS
from runners.engines.engine import Files
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.profiles.schema import TrainingVariant
from runners.serve import drafter_files, model_files, scripts

LLAMACPP_BATCH = 512  # tokens
HELD_OUT = 40  # answers
SCALING = [15_000, 30_000, 60_000, 120_000]  # answer tokens trained on


def train_variant(profile: Profile, name: str, say: Progress = print) -> Path:
    """The folder of the published drafter trained on under a variant's conditions; trained once.

    It shows what becomes of a drafter that learnt from other states, from other boundaries or from a moved target.
    """
    work = _folder(profile, name)
    drafter = work / "drafter"
    if (drafter / "history.json").is_file():
        return drafter
    chosen = profile.required_training().variants[name]
    packed_sequences.pack(_text(chosen), work / "seq.safetensors")
    files = model_files.files(profile, None, say)
    target = _target(profile, chosen, files, work, say)
    states = _capture(profile, chosen, files, target, work, say)
    settings = work / "settings.json"
    settings.write_text(json.dumps(variant_settings(profile, chosen, files, target, states, work), indent=1))
    scripts.run_script("train_drafter", [settings], say)
    return drafter


def _folder(profile: Profile, name: str) -> Path:
    """Where a variant is kept: named by its settings, its text and the drafter it starts from."""
    facts = [
        profile.required_training().variants[name].model_dump_json(),
        str(profile.required_training().boundaries),
        hashes.sha256(corpus.FOLDER / "answers.parquet"),
        drafter_files.digest(profile, "aligned"),
    ]
    return train.folder(profile) / "variants" / f"{name}-{hashlib.sha256(' '.join(facts).encode()).hexdigest()[:12]}"


def _text(chosen: TrainingVariant) -> list[dict]:
    """The answers that a variant is trained on, and some held-out ones to judge it by."""
    rows = pd.read_parquet(corpus.FOLDER / "answers.parquet")
    trained = rows[rows["part"] == "train"].head(chosen.answers)
    tokens = trained["prompt_tokens"].map(len) + trained["answer_tokens"].map(len)
    # llama.cpp's capture runs a sequence as one batch, and its batch holds 512 tokens.
    trained = trained[tokens <= LLAMACPP_BATCH]
    held_out = rows[rows["part"] == "held-out"].head(HELD_OUT)
    return pd.concat([trained, held_out]).to_dict("records")


def _target(profile: Profile, chosen: TrainingVariant, files: Files, work: Path, say: Progress) -> Path:
    """The target that the variant is trained for: the profile's own, or one moved by noise."""
    if not chosen.target_noise:
        return files.required_folder()
    moved = work / "target"
    if not moved.is_dir():
        words = [files.folder, moved, chosen.target_noise, profile.required_training().seed]
        scripts.run_script("perturb_target", words, say)
    return moved


def _capture(profile: Profile, chosen: TrainingVariant, files: Files, target: Path, work: Path, say: Progress) -> Path:
    """The folder of the aux states that the variant is trained on.

    `finals` is always captured from the reference: the last hidden states, which give what the target would choose.
    """
    sequences = work / "seq.safetensors"
    boundaries = ",".join(map(str, chosen.boundaries or profile.required_training().boundaries))
    scripts.run_script("capture_reference", [target, sequences, work / "finals", boundaries], say)
    if chosen.states == "reference":
        return work / "finals"
    states, source = work / "states", engine(chosen.states)
    if not (states / "manifest.json").is_file():
        words = [files.target(source.serves), sequences, states, boundaries]
        scripts.run_script(source.required_capture_script(), words, say, environment=source.name)
    return states


def variant_settings(
    profile: Profile, chosen: TrainingVariant, files: Files, target: Path, states: Path, work: Path
) -> dict:
    """The settings of scripts/train_drafter.py that train a variant on from the published drafter."""
    return train.numbers(profile.required_training()) | {
        "target": str(target),
        "sequences": str(work / "seq.safetensors"),
        "states": str(states),
        "finals": str(work / "finals"),
        "output": str(work / "drafter"),
        "start": str(DRAFTERS / "aligned"),
        # The boundaries that are served, even where others were trained on: that is the fault.
        "config": train.config_of(files.required_folder(), profile.required_training().boundaries),
        "epochs": chosen.epochs,
        "learning_rate": profile.required_training().learning_rate / 3,  # it starts from trained weights
    }


def publish_variant(profile: Profile, name: str, say: Progress = print) -> int:
    """Train a variant, if that was not done yet, and copy it to data/drafters/<name>; UserError for an unknown one."""
    known = profile.training.variants if profile.training else {}
    if name not in known:
        raise UserError(f"Profile {profile.name} trains no variant '{name}'; it has: {', '.join(known) or 'none'}.")
    made, chosen = train_variant(profile, name, say), known[name]
    rows = {
        "training": f"the aligned drafter, {chosen.epochs:g} epochs more on {chosen.answers:,} answers",
        "accept length from every position, held out": None,
        "top-1 by draft step, held out": None,
        "survival by draft step, held out": None,
    }
    if chosen.target_noise:
        seed = profile.required_training().seed
        noise = f"{chosen.target_noise:g} of each matrix's standard deviation, seed {seed}"
        rows["trained for"] = f"a sibling of the target: its layers moved by noise, {noise}"
    if chosen.states != "reference":
        rows["aux states"] = f"{engine(chosen.states).title}'s kernels"
    if chosen.boundaries:
        rows["aux states"] = ", ".join(f"input of layer {b}" for b in chosen.boundaries)
    card.publish(profile, made, name, rows, say)
    return 0


def scaling(profile: Profile, say: Progress = print) -> int:
    """data/drafters/scaling.csv: the same training on less text; written after each size, so an interruption costs one.

    UserError when the drafter was not trained on this machine: the smaller sizes are trained on the same states.
    """
    work = train.folder(profile)
    if not (work / "aligned.json").is_file():
        raise UserError("The drafter was not trained on this machine; run `make drafter` first.")
    rows = [_result(DRAFTERS / "aligned")]
    for tokens in SCALING:
        output = work / f"scaling-{tokens}"
        if not (output / "history.json").is_file():
            settings = json.loads((work / "aligned.json").read_text()) | train.numbers(profile.required_training())
            settings |= {"output": str(output), "train_tokens": tokens}
            output.mkdir(parents=True, exist_ok=True)
            (output / "settings.json").write_text(json.dumps(settings, indent=1))
            say(f"training on {tokens:,} answer tokens")
            scripts.run_script("train_drafter", [output / "settings.json"], say)
        rows.append(_result(output))
        table = pd.DataFrame(rows).sort_values("train_tokens")
        table.to_csv(DRAFTERS / "scaling.csv", index=False)
    return 0


def _result(folder: Path) -> dict:
    """A training's size and its last held-out figures."""
    record = json.loads((folder / "history.json").read_text())
    last = record["history"][-1]
    row = {"train_tokens": record["facts"]["train_tokens"], "steps": last["step"], "seconds": round(last["seconds"])}
    row |= {f"top1_step{i + 1}": round(t, 4) for i, t in enumerate(last["top1"])}
    return row | {"accept_length": round(last["accept_length"], 4)}
