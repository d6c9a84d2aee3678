"""How far may a target move before a drafter made for it is lost? Accept length against the target's own drift.

The target is moved by noise in growing steps (scripts/perturb_target.py). Each moved target answers the same prompts
greedily, as if it were served, and the drafter is replayed on *its* states and tokens. The drift is how far the moved
target's states are from the target's own on the same text, so that any fine-tune can be compared with the curve.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file

from runners.core import checkpoint, hashes
from runners.core.progress import Progress
from runners.drafter import hidden_states, judge, packed_sequences, replay
from runners.profiles.profile import Profile
from runners.profiles.prompts import Prompt
from runners.serve import model_files, scripts

FILE = "target_drift.csv"
SCALES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)  # of the noise, over each matrix's own standard deviation
COLUMNS = ["noise", "drift", "same_choice", "agreement", "same_text_accept_length"]
COLUMNS += ["steps", "accepted", "accept_length", "survival", "repeated"]


@dataclass(frozen=True)
class DriftSpec:
    """What is moved and what is measured on it.

    same_text: sequences written by packed_sequences.pack, which every moved target reads. prompts: what every moved
    target answers for itself, in output_tokens tokens. work: where moved targets and states are kept.
    """

    profile: Profile
    drafter: str
    prompts: list[Prompt]
    output_tokens: int
    same_text: Path
    work: Path
    scales: tuple[float, ...] = SCALES

    @property
    def kept(self) -> Path:
        """The folder of the states of `same_text`: states belong to one text."""
        return self.work / hashes.sha256(self.same_text)[:12]


@dataclass(frozen=True)
class _Original:
    """The target before it is moved: its folder, the drafter's, and its states and choices on the same text."""

    folder: Path
    drafter_folder: Path
    boundaries: list[int]
    states: hidden_states.States
    choice: np.ndarray  # [tokens] int


def measure(spec: DriftSpec, say: Progress = print) -> pd.DataFrame:
    """One row a scale: columns COLUMNS.

    noise: see SCALES. drift: mean relative L2 distance of the aux states on `same_text`. same_choice: share of its
    positions at which both targets choose the same next token. agreement: how often the drafter's first guess is the
    moved target's choice there. same_text_accept_length: of chains from every position there. Only these compare like
    with like, because a damaged target writes other text. accept_length: replayed on that other text; repeated: the
    share of its trigrams that occurred before in the same answer.
    """
    files = model_files.files(spec.profile, spec.drafter, say)
    folder, drafter = files.required_folder(), files.required_drafter_folder()
    boundaries = checkpoint.boundaries_of(drafter, spec.profile.target.layers)
    states, choice = _states(folder, spec.same_text, spec.kept / "noise-0", boundaries, say)
    original = _Original(folder, drafter, boundaries, states, choice)
    rows = []
    for scale in spec.scales:
        moved = _moved_target(spec, original.folder, scale, say)
        row = {"noise": scale} | _on_same_text(spec, original, moved, scale, say)
        row |= _on_own_text(spec, original, moved, scale, say)
        rows.append(row)
        say(f"target moved by {scale:g}: drift {row['drift']:.3f}, accept length {row['accept_length']:.3f}")
    return pd.DataFrame(rows, columns=COLUMNS)


def _moved_target(spec: DriftSpec, folder: Path, scale: float, say: Progress) -> Path:
    """The folder of the target moved by noise of this scale; made once. Scale 0 is the target itself."""
    if not scale:
        return folder
    moved = spec.work / f"target-{scale:g}"
    if not (moved / "model.safetensors").is_file():
        scripts.run_script("perturb_target", [folder, moved, scale, spec.profile.required_training().seed], say)
    return moved


def _on_same_text(spec: DriftSpec, original: _Original, moved: Path, scale: float, say: Progress) -> dict:
    """drift, same_choice, agreement and same_text_accept_length."""
    captured = spec.kept / f"noise-{scale:g}"
    states, choice = _states(moved, spec.same_text, captured, original.boundaries, say)
    judged = judge.judge(spec.profile, moved, original.drafter_folder, spec.same_text, captured, say)
    keep = hidden_states.without_first(original.states)
    drifts = [hidden_states.distance(states.at(b)[keep], original.states.at(b)[keep]) for b in original.boundaries]
    return {
        "drift": float(np.mean(drifts)),
        "same_choice": float(np.mean(choice == original.choice)),
        "agreement": judged["top1"][0],
        "same_text_accept_length": judged["accept_length"],
    }


def _on_own_text(spec: DriftSpec, original: _Original, moved: Path, scale: float, say: Progress) -> dict:
    """steps, accepted, accept_length, survival and repeated."""
    sequences = spec.work / f"answers-{scale:g}.safetensors"
    if not sequences.is_file():
        _write_answers(spec, moved, sequences, say)
    states = spec.work / f"answers-states-{scale:g}"
    _capture(moved, sequences, states, original.boundaries, say)
    k = spec.profile.required_training().steps
    replayed = replay.ReplaySpec(spec.profile, original.drafter_folder, sequences, states, k, spec.output_tokens)
    counts = replay.replay(replayed, say)
    return {
        "steps": counts["steps"],
        "accepted": counts["accepted"],
        "accept_length": counts["accept_length"],
        "survival": [round(a / counts["steps"], 4) for a in counts["accepted_per_position"]],
        "repeated": _repeated(sequences),
    }


def _capture(folder: Path, sequences: Path, output: Path, boundaries: list[int], say: Progress) -> None:
    if not (output / "manifest.json").is_file():
        words = [folder, sequences, output, ",".join(map(str, boundaries))]
        scripts.run_script("capture_reference", words, say)


def _states(
    folder: Path, sequences: Path, output: Path, boundaries: list[int], say: Progress
) -> tuple[hidden_states.States, np.ndarray]:
    """(the target's states, [tokens] the next token that it chooses at each position)."""
    _capture(folder, sequences, output, boundaries, say)
    shards = [load_file(p) for p in sorted(output.glob("shard-*.safetensors"))]
    return hidden_states.load(output), np.concatenate([s["argmax"] for s in shards])


def _write_answers(spec: DriftSpec, target: Path, sequences: Path, say: Progress) -> None:
    """The target's greedy answers to the prompts, packed with them into `sequences`."""
    prompts = [{"id": p.id, "messages": list(p.messages)} for p in spec.prompts]
    request, result = sequences.with_suffix(".request.json"), sequences.with_suffix(".answers.json")
    request.write_text(json.dumps({"prompts": prompts, "max_new_tokens": spec.output_tokens, "batch": 16}))
    scripts.run_script("reference_greedy", [target, request, result], say)
    found = json.loads(result.read_text())
    rows = [
        {"prompt_tokens": found["prompt_tokens"][p.id], "answer_tokens": found["tokens"][p.id], "part": ""}
        for p in spec.prompts
    ]
    packed_sequences.pack(rows, sequences)


def _repeated(sequences: Path) -> float:
    """Share of the answers' trigrams that occurred before in the same answer."""
    packed = load_file(sequences)
    seen = again = 0
    for i, prompt in enumerate(packed["prompt"]):
        answer = packed["ids"][packed["offsets"][i] + prompt : packed["offsets"][i + 1]].tolist()
        trigrams = list(zip(answer, answer[1:], answer[2:], strict=False))
        seen, again = seen + len(trigrams), again + len(trigrams) - len(set(trigrams))
    return again / seen if seen else 0.0
