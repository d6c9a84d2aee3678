"""Publish a trained drafter in data/drafters, with a card that says what it was made from."""

import json
import shutil
from pathlib import Path

from runners.core import hashes, paths
from runners.core.errors import UserError
from runners.core.progress import Progress
from runners.drafter import corpus
from runners.profiles.profile import Profile
from runners.profiles.schema import Training

DRAFTERS = paths.DATA / "drafters"


def publish(profile: Profile, source: Path, name: str, rows: dict, say: Progress) -> None:
    """Copy `source` to data/drafters/<name> and write its card; UserError when no training has ended there.

    rows: see `card`.
    """
    if not (source / "history.json").is_file():
        raise UserError(f"No trained drafter in {source}; run `make drafter` to its end first.")
    target = DRAFTERS / name
    target.mkdir(parents=True, exist_ok=True)
    for file in ("model.safetensors", "config.json", "history.json"):
        shutil.copyfile(source / file, target / file)
    record = json.loads((source / "history.json").read_text())
    (target / "README.md").write_text(card(profile, profile.required_training(), record, target, rows))
    size = (target / "model.safetensors").stat().st_size
    say(f"drafter: {size / 1e6:.1f} MB in {target.relative_to(paths.ROOT)}")


def card(profile: Profile, training: Training, record: dict, folder: Path, rows_of_its_own: dict | None = None) -> str:
    """The drafter's card, in Markdown.

    record: the training's history.json. folder: holds its weights. rows_of_its_own: rows that replace the usual ones of
    the same name; None drops the row.
    """
    facts, last = record["facts"], record["history"][-1]
    states = ", ".join(f"input of layer {b}" for b in training.boundaries)
    products = "bfloat16" if facts["bfloat16"] else "float32"
    rows = {
        "target": f"{profile.target.name}, GGUF sha256 `{profile.target.file_sha256}`",
        "method": f"EAGLE-3, training-time test over {training.steps} draft steps, one decoder layer",
        "size": f"{facts['parameters']:,} parameters, float16, draft vocabulary {training.draft_vocab_size:,}",
        "data": f"{facts['train_sequences']:,} of the target's own answers, {facts['train_tokens']:,} answer tokens",
        "held out": f"{facts['held_out_sequences']:,} answers, other subjects, {last['positions']:,} positions judged",
        "text": f"data/corpus/answers.parquet, sha256 `{hashes.sha256(corpus.FOLDER / 'answers.parquet')}`",
        "aux states": f"{states}; reference model, float32, kept as float16",
        "training": f"{training.epochs:g} epochs, {last['step']:,} steps of about {training.tokens_per_batch:,} tokens",
        "time": f"{last['seconds'] / 60:.0f} min, {facts['device']}, {products} products",
        "top-1 by draft step, held out": ", ".join(f"{x:.1%}" for x in last["top1"]),
        "survival by draft step, held out": ", ".join(f"{x:.1%}" for x in last["survival"]),
        "accept length from every position, held out": f"{last['accept_length']:.3f}",
        "weights": f"sha256 `{hashes.sha256(folder / 'model.safetensors')}`",
    } | (rows_of_its_own or {})
    table = "\n".join(f"| {name} | {text} |" for name, text in rows.items() if text is not None)
    return f"""# EAGLE-3 drafter for {profile.target.name} ({profile.target.precision})

| | |
|---|---|
{table}

Top-1 at a later draft step is given that the chain was right so far in its inputs; survival is the share of chains
that were right up to there. What an engine serves is measured in the book.

Licence: Apache-2.0, as the target. Made by `make drafter`.
"""
