"""Why does a drafter fail? Each suspected cause produced for real, replayed and served.

A cause is a change to the aligned drafter's checkpoint (scripts/derive_drafter.py). For each one the same prompts are
served on the engine and replayed on the states of the same text, so that a cause that replay predicts and the engine
confirms is understood, and one that neither shows explains nothing.
"""

from pathlib import Path

import pandas as pd

from runners.core import acceptance_math, files, hashes
from runners.core.progress import Progress
from runners.drafter import card, replay, retrain
from runners.drafter.faults import AS_TRAINED, CAUSES
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.profiles.prompts import Prompt
from runners.serve import model_files

COLUMNS = ["configuration", "change", "cause", "steps", "accepted", "accept_length_served", "accept_length_replayed"]
COLUMNS += ["survival", "reads_one"]


def with_cause(profile: Profile, configuration: str, change: str, say: Progress = print) -> tuple[Profile, str]:
    """The profile with one more configuration: the same, its drafter changed. (profile, configuration's name)

    A fault of the checkpoint is derived; one of the training is trained, once (variants.variant).
    """
    if change == AS_TRAINED:
        return profile, configuration
    content = profile.model_dump()
    drafter = profile.configuration(configuration).drafter
    if profile.training and change in profile.training.variants:
        published = card.DRAFTERS / change
        folder = published if published.is_dir() else retrain.variant(profile, change, say)
        content["drafters"][change] = {"path": str(folder)}
    else:
        content["drafters"][change] = {"made": "derived", "source": drafter, "change": change}
    name = f"{configuration}.{change.replace('+', 'plus')}"
    content["configurations"][name] = content["configurations"][configuration] | {"drafter": change}
    return type(profile).model_validate(content), name


def serve_all(
    profile: Profile,
    configuration: str,
    asked: list[Prompt],
    output_tokens: int,
    concurrency: int,
    out: Path,
    work: Path,
    say: Progress = print,
    changes: list[str] | None = None,
) -> list[dict]:
    """A row a cause, served and replayed; rows already in `out`/hypotheses.jsonl are kept, so it resumes."""
    kept = files.KeptRows(out / "hypotheses.jsonl", ["configuration", "change", "concurrency"])
    for change in changes or list(CAUSES):
        changed, name = with_cause(profile, configuration, change, say)
        folder = model_files.files(changed, changed.configuration(name).drafter, say).drafter_folder
        digest = (
            hashes.noted_sha256(folder / "model.safetensors")[:12] + hashes.noted_sha256(folder / "config.json")[:12]
        )
        facts = {"configuration": configuration, "change": change, "digest": digest, "concurrency": concurrency}
        if kept.has(facts):
            continue
        # Where an engine's states are the reference's to rounding (vLLM in fp32: drift.csv), its own capture would only
        # cost a start each.
        kind = profile.configuration(configuration).engine
        source = kind if engine(kind).rounds_activations else "reference"
        found = replay.compare(changed, name, asked, output_tokens, [concurrency], work, say, source)[0]
        kept.replace(facts, [found | {"output_tokens": output_tokens}])
    return kept.rows


def table(rows: list[dict]) -> pd.DataFrame:
    """One row a cause and configuration: accept length served and replayed, survival by position, what it explains.

    In the order of CAUSES, whichever was served last. The case's drafter read 1.00, to the two decimals of its log:
    `reads_one` says whether a cause, served, reads so too.
    """
    kept, order = [], list(CAUSES)
    # An engine's rows stay together; a cause of an older version comes last.
    for row in sorted(rows, key=lambda r: (r["configuration"], (*order, r["change"]).index(r["change"]))):
        served, replayed = row["served"], row["replayed"]
        survival = [round(a / served["steps"], 4) for a in served["accepted_per_position"]] if served["steps"] else []
        kept.append(
            {
                "configuration": row["configuration"],
                "change": row["change"],
                "cause": CAUSES.get(row["change"], row["change"]),
                "steps": served["steps"],
                "accepted": served["accepted"],
                "accept_length_served": served["accept_length"],
                "accept_length_replayed": replayed["accept_length"],
                "survival": survival,
                "reads_one": acceptance_math.reads_one(served["steps"], served["accepted"]),
            }
        )
    return pd.DataFrame(kept, columns=COLUMNS)
