"""Replay: the accept length predicted from tokens and states, and `compare`, which sets it beside the served one.

An engine answers the prompts, its own kernels capture the states of those answers (scripts/capture_*.py), and the
drafter is replayed on them (scripts/replay.py). Both sides are about the same text, so they must agree.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.core import provenance
from runners.core.acceptance_math import accept_length
from runners.core.checkpoint import boundaries_of
from runners.core.errors import UserError
from runners.core.progress import Progress
from runners.drafter import hidden_states, packed_sequences, serve_and_count
from runners.drafter.serve_and_count import ServeSpec
from runners.engines.engine import Form
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.readers.records import Counters
from runners.serve import model_files, scripts


@dataclass(frozen=True)
class ReplaySpec:
    """What one replay reads, and how an engine would run the same requests.

    sequences: prompts and answers, as packed_sequences.pack writes them. states: the aux states of those sequences, as
    `capture` returns them. running: how many requests the engine runs at the same time. limit: positions beyond which
    it drafts nothing (position_limit); the running requests then draft together or not at all.
    """

    profile: Profile
    drafter_folder: Path
    sequences: Path
    states: Path
    k: int
    output_tokens: int
    running: int = 1
    limit: int | None = None


def capture(profile: Profile, source: str, sequences: Path, boundaries: list[int], say: Progress) -> Path:
    """The folder of the sequences' states from one source (reference, vllm, llamacpp).

    Captured once: the folder's name holds a hash of the sequences, the source and the boundaries.
    """
    digest = hashlib.sha256(sequences.read_bytes() + f"{source} {boundaries}".encode()).hexdigest()[:12]
    output = sequences.parent / f"states-{source}-{digest}"
    if (output / "manifest.json").is_file():
        return output
    files = model_files.files(profile, None, say)
    # The reference is no engine: transformers on the Hugging Face folder, in an environment of its own.
    form: Form = "folder"
    script = "capture_reference"
    if source != "reference":
        form, script = engine(source).serves, engine(source).required_capture_script()
    words = [files.target(form), sequences, output, ",".join(map(str, boundaries))]
    scripts.run_script(script, words, say, environment=source)
    return output


def position_limit(kind: str, drafter_folder: Path) -> int | None:
    """Positions beyond which this engine drafts nothing: the drafter's own max_position_embeddings.

    None where the engine drafts on (llama.cpp; SGLang as far as seen).
    """
    if not engine(kind).stops_at_drafter_limit:
        return None
    return json.loads((drafter_folder / "config.json").read_text()).get("max_position_embeddings")


def replay(spec: ReplaySpec, say: Progress) -> dict:
    """Pooled counts of scripts/replay.py: steps, drafted, accepted, accepted_per_position, accept_length.

    UserError when the states of a layer that the drafter reads were not captured.
    """
    wanted = boundaries_of(spec.drafter_folder, spec.profile.target.layers)
    captured = hidden_states.captured_boundaries(spec.states)
    missing = sorted(set(wanted) - set(captured))
    if missing:
        raise UserError(f"{spec.states} holds no states at the input of layer {missing[0]}; capture them first.")
    request = {
        "target": str(model_files.files(spec.profile, None, say).folder),
        "drafter": str(spec.drafter_folder),
        "sequences": str(spec.sequences),
        "states": str(spec.states),
        "k": spec.k,
        "output_tokens": spec.output_tokens,
        "columns": [captured.index(b) for b in wanted],
        "at_once": spec.running,
        "limit": spec.limit,
    }
    return pooled(scripts.ask_script("replay", request), spec.k)


def pooled(rows: list[dict], k: int) -> dict:
    """The sums of scripts/replay.py's rows; the accept length is a ratio of sums, never a mean of ratios.

    accept_length: None without a step.
    """
    steps = sum(r["steps"] for r in rows)
    per_position = [sum(r["accepted_per_position"][i] for r in rows) for i in range(k)]
    accepted = sum(per_position)
    return {
        "steps": steps,
        "drafted": sum(r["drafted"] for r in rows),
        "accepted": accepted,
        "accepted_per_position": per_position,
        "accept_length": accept_length(steps, accepted) if steps else None,
    }


def compare(spec: ServeSpec, work: Path, say: Progress = print, source: str | None = None) -> list[dict]:
    """One row a concurrency: served and replayed counts of a configuration's drafter over the same answers.

    work: where sequences and states are kept. source: whose states replay reads; None: the engine's own.
    UserError when the configuration has no EAGLE-3 drafter.
    """
    chosen = spec.profile.configuration(spec.configuration)
    if chosen.method != "eagle3" or chosen.drafter is None or chosen.k is None:
        raise UserError(f"{spec.configuration} has no EAGLE-3 drafter to replay.")
    folder = model_files.files(spec.profile, chosen.drafter, say).required_drafter_folder()
    boundaries = boundaries_of(folder, spec.profile.target.layers)
    rows, began = [], provenance.now()
    for served in serve_and_count.serve_and_count(spec):
        concurrency = served.concurrency
        sequences = work / f"{spec.configuration}-C{concurrency}.safetensors"
        # Every sequence counts here, so none is marked as held out.
        answers = [
            {"prompt_tokens": a.prompt_tokens, "answer_tokens": a.answer_tokens, "part": ""} for a in served.answers
        ]
        packed_sequences.pack(answers, sequences)
        replayed = replay(
            ReplaySpec(
                profile=spec.profile,
                drafter_folder=folder,
                sequences=sequences,
                states=capture(spec.profile, source or chosen.engine, sequences, boundaries, say),
                k=chosen.k,
                output_tokens=spec.output_tokens,
                running=concurrency,
                limit=position_limit(chosen.engine, folder),
            ),
            say,
        )
        counted = _counted(served.counters)
        row: dict[str, Any] = {
            "configuration": spec.configuration,
            "engine": chosen.engine,
            "drafter": chosen.drafter,
            "k": chosen.k,
        }
        row |= {"concurrency": concurrency, "prompts": len(spec.prompts), "served": counted, "replayed": replayed}
        row["measured_at"] = began
        rows.append(row)
        say(
            f"{spec.configuration} C={concurrency}: served {counted['accept_length']:.3f}, "
            f"replayed {replayed['accept_length']:.3f}"
        )
    return rows


def _counted(c: Counters) -> dict:
    """An engine's counters in the form of `pooled`."""
    return {
        "steps": c.steps,
        "drafted": c.drafted,
        "accepted": c.accepted,
        "accepted_per_position": c.accepted_per_position,
        "accept_length": accept_length(c.steps, c.accepted) if c.steps else None,
    }
