"""How far may a target move before a drafter made for it is lost? Accept length against the target's own drift.

Siblings of the target (scripts/perturb_target.py) in growing steps. Each answers the same prompts greedily, as a served
target would; the drafter is replayed on *its* states and tokens. The drift is the sibling's states against the target's
own on the same text, so that a reader can hold any fine-tune against the curve.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file

from runners.core import checkpoint, hashes
from runners.drafter import hidden_states, judge, packed_sequences, replay
from runners.profiles.profile import Profile
from runners.profiles.prompts import Prompt
from runners.serve import model_files, scripts

SCALES = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3]  # noise over each matrix's own standard deviation
COLUMNS = ["noise", "drift", "same_choice", "agreement", "same_text_accept_length"]
COLUMNS += ["steps", "accepted", "accept_length", "survival", "repeated"]


def measure(
    profile: Profile,
    drafter: str,
    asked: list[Prompt],
    output_tokens: int,
    same_text: Path,
    work: Path,
    say: Callable[[str], None] = print,
    scales: list[float] | None = None,
) -> pd.DataFrame:
    """One row a scale: columns COLUMNS.

    noise: see SCALES. drift: mean relative L2 distance of the aux states on `same_text` (a file of training.pack).
    same_choice: share of its positions at which both targets choose the same next token. agreement: the drafter's first
    guess against the sibling's choice there, and same_text_accept_length the chains from every position: these alone
    compare like with like, since a damaged target writes other text. accept_length: replayed on that other text, of
    whose trigrams the share `repeated` occurred before in the same answer.
    """
    files = model_files.files(profile, drafter, say)
    boundaries = checkpoint.boundaries_of(files.drafter_folder, profile.target.layers)
    kept = work / hashes.sha256(same_text)[:12]  # states are of one text
    own, own_choice = _states(files.folder, same_text, kept / "noise-0", boundaries, say)
    rows = []
    for scale in SCALES if scales is None else scales:
        folder = files.folder
        if scale:
            folder = work / f"target-{scale:g}"
            if not (folder / "model.safetensors").is_file():
                scripts.run_script("perturb_target", [files.folder, folder, scale, profile.training.seed], say)
        captured = kept / f"noise-{scale:g}"
        states, choice = _states(folder, same_text, captured, boundaries, say)
        judged = judge.judge(profile, folder, files.drafter_folder, same_text, captured, say)
        keep = hidden_states.without_first(own)
        moved = [hidden_states.distance(states.at(b)[keep], own.at(b)[keep]) for b in boundaries]
        sequences = _answered(folder, asked, output_tokens, work / f"answers-{scale:g}.safetensors", say)
        answered = work / f"answers-states-{scale:g}"
        _capture(folder, sequences, answered, boundaries, say)
        k = profile.training.steps
        counts = replay.replay(profile, files.drafter_folder, sequences, answered, k, output_tokens, say)
        steps = counts["steps"]
        rows.append(
            {
                "noise": scale,
                "drift": float(np.mean(moved)),
                "same_choice": float(np.mean(choice == own_choice)),
                "agreement": judged["top1"][0],
                "same_text_accept_length": judged["accept_length"],
                "steps": steps,
                "accepted": counts["accepted"],
                "accept_length": counts["accept_length"],
                "survival": [round(a / steps, 4) for a in counts["accepted_per_position"]],
                "repeated": _repeated(sequences),
            }
        )
        say(f"target moved by {scale:g}: drift {rows[-1]['drift']:.3f}, accept length {counts['accept_length']:.3f}")
    return pd.DataFrame(rows, columns=COLUMNS)


def _capture(folder: Path, sequences: Path, output: Path, boundaries: list[int], say: Callable[[str], None]) -> None:
    if not (output / "manifest.json").is_file():
        words = [folder, sequences, output, ",".join(map(str, boundaries))]
        scripts.run_script("capture_reference", words, say)


def _states(folder: Path, sequences: Path, output: Path, boundaries: list[int], say) -> tuple:
    """(alignment.States, the target's own next token at each position)."""
    _capture(folder, sequences, output, boundaries, say)
    shards = [load_file(p) for p in sorted(output.glob("shard-*.safetensors"))]
    return hidden_states.load(output), np.concatenate([s["argmax"] for s in shards])


def _answered(folder: Path, asked: list[Prompt], output_tokens: int, place: Path, say: Callable[[str], None]) -> Path:
    """The target's greedy answers with their prompts, packed."""
    if not place.is_file():
        prompts = [{"id": p.id, "messages": list(p.messages)} for p in asked]
        request, told = place.with_suffix(".request.json"), place.with_suffix(".answers.json")
        request.write_text(json.dumps({"prompts": prompts, "max_new_tokens": output_tokens, "batch": 16}))
        scripts.run_script("reference_greedy", [folder, request, told], say)
        found = json.loads(told.read_text())
        packed_sequences.pack(
            [
                {"prompt_tokens": found["prompt_tokens"][p.id], "answer_tokens": found["tokens"][p.id], "part": ""}
                for p in asked
            ],
            place,
        )
    return place


def _repeated(sequences: Path) -> float:
    """Share of the answers' trigrams that stood before in the same answer."""
    packed = load_file(sequences)
    seen = again = 0
    for i, prompt in enumerate(packed["prompt"]):
        answer = packed["ids"][packed["offsets"][i] + prompt : packed["offsets"][i + 1]].tolist()
        trigrams = list(zip(answer, answer[1:], answer[2:], strict=False))
        seen, again = seen + len(trigrams), again + len(trigrams) - len(set(trigrams))
    return again / seen if seen else 0.0
