"""Replay against served: the accept length predicted from tokens and states, beside the one an engine counted.

Each engine is asked the prompts, its answers are captured by its own kernels (scripts/capture_*.py), and the drafter
is replayed on them (scripts/replay.py). Both sides then speak about the same text, so that they must agree.
"""

import hashlib
import json
from pathlib import Path

from runners.core.acceptance_math import accept_length
from runners.core.checkpoint import boundaries_of
from runners.core.errors import UserError
from runners.core.progress import Progress
from runners.drafter import packed_sequences, serve_and_count
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.profiles.prompts import Prompt
from runners.serve import model_files, scripts


def capture(profile: Profile, source: str, sequences: Path, boundaries: list[int], say: Progress) -> Path:
    """States of the sequences by one source (reference, vllm, llamacpp); kept by content, so made once."""
    digest = hashlib.sha256(sequences.read_bytes() + f"{source} {boundaries}".encode()).hexdigest()[:12]
    output = sequences.parent / f"states-{source}-{digest}"
    if (output / "manifest.json").is_file():
        return output
    files = model_files.files(profile, None, say)
    # The reference is no engine: transformers on the Hugging Face folder, in an environment of its own.
    form, script = ("folder", "capture_reference")
    if source != "reference":
        form, script = engine(source).serves, engine(source).capture_script
    if script is None:
        raise UserError(f"The hidden states of {source} cannot be captured here; no script does it.")
    words = [files.target(form), sequences, output, ",".join(map(str, boundaries))]
    scripts.run_script(script, words, say, environment=source)
    return output


def limit_in(kind: str, drafter_folder: Path) -> int | None:
    """Positions beyond which this engine drafts nothing, the drafter's own max_position_embeddings; None where it
    drafts on (llama.cpp; SGLang as far as seen).
    """
    if not engine(kind).stops_at_drafter_limit:
        return None
    return json.loads((drafter_folder / "config.json").read_text()).get("max_position_embeddings")


def replay(
    profile: Profile,
    drafter_folder: Path,
    sequences: Path,
    states: Path,
    k: int,
    output_tokens: int,
    say: Progress,
    at_once: int = 1,
    limit: int | None = None,
) -> dict:
    """Pooled counts of scripts/replay.py: steps, drafted, accepted, accepted_per_position, accept_length.

    limit: limit_in's; `at_once` running requests then draft together or not at all.
    """
    files = model_files.files(profile, None, say)
    wanted = boundaries_of(drafter_folder, profile.target.layers)
    held = [int(b.rsplit(" ", 1)[1]) for b in json.loads((states / "manifest.json").read_text())["boundaries"]]
    missing = sorted(set(wanted) - set(held))
    if missing:
        raise UserError(f"{states} holds no states at the input of layer {missing[0]}; capture them first.")
    asked = {
        "target": str(files.folder),
        "drafter": str(drafter_folder),
        "sequences": str(sequences),
        "states": str(states),
        "k": k,
        "output_tokens": output_tokens,
        "columns": [held.index(b) for b in wanted],
        "at_once": at_once,
        "limit": limit,
    }
    return pooled(scripts.ask_script("replay", asked), k)


def pooled(rows: list[dict], k: int) -> dict:
    """A ratio of sums, never a mean of ratios."""
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


def compare(
    profile: Profile,
    configuration: str,
    asked: list[Prompt],
    output_tokens: int,
    concurrencies: list[int],
    work: Path,
    say: Progress = print,
    source: str | None = None,
) -> list[dict]:
    """One row a concurrency: served and replayed counts of a configuration's drafter over the same answers.

    source: whose states replay reads, the engine's own unless named otherwise.
    """
    chosen = profile.configuration(configuration)
    if chosen.method != "eagle3" or chosen.drafter is None:
        raise UserError(f"{configuration} has no EAGLE-3 drafter to replay.")
    folder = model_files.files(profile, chosen.drafter, say).drafter_folder
    rows = []
    for found in serve_and_count.serve_and_count(profile, configuration, asked, output_tokens, concurrencies):
        sequences = work / f"{configuration}-C{found.concurrency}.safetensors"
        packed_sequences.pack(
            [{"prompt_tokens": a.prompt_tokens, "answer_tokens": a.answer_tokens, "part": ""} for a in found.answers],
            sequences,
        )
        boundaries = boundaries_of(folder, profile.target.layers)
        states = capture(profile, source or chosen.engine, sequences, boundaries, say)
        limit = limit_in(chosen.engine, folder)
        together = (found.concurrency, limit)
        replayed = replay(profile, folder, sequences, states, chosen.k, output_tokens, say, *together)
        c = found.counters
        counted = {
            "steps": c.steps,
            "drafted": c.drafted,
            "accepted": c.accepted,
            "accepted_per_position": c.accepted_per_position,
            "accept_length": accept_length(c.steps, c.accepted) if c.steps else None,
        }
        row = {"configuration": configuration, "engine": chosen.engine, "drafter": chosen.drafter, "k": chosen.k}
        row |= {"concurrency": found.concurrency, "prompts": len(asked), "served": counted, "replayed": replayed}
        rows.append(row)
        say(
            f"{configuration} C={found.concurrency}: served {counted['accept_length']:.3f}, "
            f"replayed {replayed['accept_length']:.3f}"
        )
    return rows
