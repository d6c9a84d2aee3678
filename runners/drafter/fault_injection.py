"""Why does a drafter fail? Each suspected fault is put into a real drafter, which is then served and replayed.

A fault is put into the checkpoint of the aligned drafter (scripts/derive_drafter.py) or into its training
(retrain.py). For each one the same prompts are served on the engine and replayed on the states of the same text. A
fault that replay predicts and the engine confirms is understood; one that shows in neither explains nothing.
"""

import dataclasses
from pathlib import Path

from runners.core import files, hashes
from runners.core.progress import Progress
from runners.drafter import card, faults, replay, retrain
from runners.drafter.serve_and_count import ServeSpec
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.serve import model_files

FILE = "faults.jsonl"


def with_fault(profile: Profile, configuration: str, fault: str, say: Progress = print) -> tuple[Profile, str]:
    """(the profile with one more configuration, that configuration's name): the same one, its drafter with the fault.

    A fault of the checkpoint is derived when it is first served; a fault of the training is trained here, once.
    """
    if fault == faults.AS_TRAINED:
        return profile, configuration
    content = profile.model_dump()
    drafter = profile.configuration(configuration).drafter
    if profile.training and fault in profile.training.variants:
        published = card.DRAFTERS / fault
        folder = published if published.is_dir() else retrain.train_variant(profile, fault, say)
        content["drafters"][fault] = {"path": str(folder)}
    else:
        content["drafters"][fault] = {"made": "derived", "source": drafter, "fault": fault}
    name = f"{configuration}.{fault.replace('+', 'plus')}"
    content["configurations"][name] = content["configurations"][configuration] | {"drafter": fault}
    return type(profile).model_validate(content), name


def measure_faults(
    spec: ServeSpec, out: Path, work: Path, say: Progress = print, only: list[str] | None = None
) -> list[dict]:
    """Serve and replay each fault (of `only`, where given); returns the rows of `out`/faults.jsonl, one a fault.

    spec: the configuration without a fault; its first concurrency is used. Resumable: a fault that already has a row
    for the same drafter is left out.
    """
    kept = files.KeptRows(out / FILE, ["configuration", "fault", "concurrency"])
    for fault in only or list(faults.MEASURED):
        profile, name = with_fault(spec.profile, spec.configuration, fault, say)
        folder = model_files.files(profile, profile.configuration(name).drafter, say).required_drafter_folder()
        # Weights and config each give half: some faults change one, some the other.
        digest = "".join(hashes.noted_sha256(folder / file)[:12] for file in ("model.safetensors", "config.json"))
        concurrency = spec.concurrencies[0]
        facts = {"configuration": spec.configuration, "fault": fault, "digest": digest, "concurrency": concurrency}
        if kept.has(facts):
            continue
        # Where an engine's states equal the reference's up to rounding (vLLM in fp32: drift.csv), its own capture would
        # only cost a start each.
        kind = profile.configuration(name).engine
        source = kind if engine(kind).rounds_activations else "reference"
        faulty = dataclasses.replace(spec, profile=profile, configuration=name, concurrencies=[concurrency])
        found = replay.compare(faulty, work, say, source)[0]
        kept.replace(facts, [found | {"output_tokens": spec.output_tokens}])
    return kept.rows
