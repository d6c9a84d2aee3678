"""Make the profile's own EAGLE-3 drafter (`make drafter`): answers -> states -> training -> data/drafters.

Each stage can be stopped and resumed: answers by the line, states by the shard, training from its last checkpoint.
Torch is only in the reference environment, so the heavy stages are scripts that run there.
"""

import hashlib
import json
import time
from pathlib import Path

from runners.core import paths
from runners.core.errors import UserError
from runners.core.progress import Progress
from runners.drafter import card, corpus, generate_answers
from runners.drafter.packed_sequences import pack
from runners.profiles.profile import Profile
from runners.profiles.schema import Training
from runners.serve import from_profile, model_files
from runners.serve.scripts import run_script

STAGES = ("answers", "states", "train", "card")


def make(profile: Profile, stages: list[str], say: Progress = print, minutes: float | None = None) -> int:
    """Run these stages, always in the order of STAGES; returns 0.

    minutes: training stops after so long and can be resumed. UserError when the profile trains no drafter, or when an
    earlier stage is missing.
    """
    training = profile.required_training()
    if "answers" in stages:
        _answers(profile, training, say)
    if "states" in stages:
        _states(profile, training, say)
    if "train" in stages:
        _train(profile, training, say, minutes)
    if "card" in stages:
        _card(profile, training, say)
    return 0


def folder(profile: Profile) -> Path:
    """Where this machine keeps answers, states and checkpoints; git ignores it."""
    return paths.ROOT / "local" / "drafter" / profile.name


def _answers(profile: Profile, training: Training, say: Progress) -> None:
    """The target answers the prompts that have no answer yet; all answers go to data/corpus/answers.parquet."""
    prompts = corpus.compose(training.prompts, training.seed)
    kept = folder(profile) / "answers.jsonl"
    known = {row["id"] for row in generate_answers.read(kept)}
    if any(p.id not in known for p in prompts):
        log = paths.BUILD / "logs" / profile.name / f"answers-{time.strftime('%H%M%S')}.log"
        with from_profile.running(profile, training.configuration, log) as server:
            slots = profile.configuration(training.configuration).max_running_requests
            generate_answers.generate(server.base_url, prompts, training, kept, slots, say)
    table = generate_answers.table(generate_answers.read(kept))
    corpus.FOLDER.mkdir(parents=True, exist_ok=True)
    table.to_parquet(corpus.FOLDER / "answers.parquet", compression="zstd", index=False)
    say(f"{len(table)} answers, {sum(map(len, table['answer_tokens']))} tokens")


def _states(profile: Profile, training: Training, say: Progress) -> None:
    """The reference model's aux states on the published answers, under a name that holds the hash of the text."""
    import pandas as pd

    source = corpus.FOLDER / "answers.parquet"
    if not source.is_file():
        raise UserError(f"No {source}; make the answers first (specverdict drafter --stage answers).")
    work = folder(profile)
    pack(pd.read_parquet(source).to_dict("records"), work / "sequences.safetensors")
    files = model_files.files(profile, None, say)
    digest = hashlib.sha256((work / "sequences.safetensors").read_bytes()).hexdigest()[:12]
    states = work / f"states-reference-{digest}"
    boundaries = ",".join(map(str, training.boundaries))
    run_script("capture_reference", [files.folder, work / "sequences.safetensors", states, boundaries], say)
    # Training reads `states`, whichever text they are of; older states stay beside the new ones.
    (work / "states").unlink(missing_ok=True)
    (work / "states").symlink_to(states.name)


def _train(profile: Profile, training: Training, say: Progress, minutes: float | None) -> None:
    """Train `aligned` on those states (scripts/train_drafter.py)."""
    work = folder(profile)
    files = model_files.files(profile, None, say)
    settings = numbers(training) | {
        "target": str(files.folder),
        "sequences": str(work / "sequences.safetensors"),
        "states": str(work / "states"),
        "output": str(work / "aligned"),
        "config": config_of(files.required_folder(), training.boundaries),
        "minutes": minutes,
    }
    (work / "aligned.json").write_text(json.dumps(settings, indent=1))
    run_script("train_drafter", [work / "aligned.json"], say)


def numbers(training: Training) -> dict:
    """Those settings of scripts/train_drafter.py that are numbers of the profile's training section."""
    names = ("draft_vocab_size", "epochs", "tokens_per_batch", "learning_rate", "steps", "seed")
    return {name: getattr(training, name) for name in names}


def config_of(target_folder: Path, boundaries: list[int]) -> dict:
    """config.json of an EAGLE-3 drafter with the target's own sizes (vllm/transformers_utils/configs/eagle.py)."""
    target = json.loads((target_folder / "config.json").read_text())
    same = ["hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"]
    same += ["rms_norm_eps", "max_position_embeddings", "hidden_act", "bos_token_id", "eos_token_id"]
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        **{k: target[k] for k in same},
        "num_hidden_layers": 1,
        "rope_theta": target["rope_parameters"]["rope_theta"],
        "tie_word_embeddings": False,
        "attention_bias": False,
        "torch_dtype": "float16",
        # In vLLM, id i means the input of layer i, without +1 (vllm/model_executor/models/llama.py).
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": boundaries, "use_aux_hidden_state": True},
    }


def _card(profile: Profile, training: Training, say: Progress) -> None:
    """Copy the trained drafter to data/drafters/aligned, with a card that says what it was made from."""
    card.publish(profile, folder(profile) / "aligned", "aligned", {}, say)
