"""Make the profile's own EAGLE-3 drafter: answers -> states -> training -> data/drafters (`make drafter`).

Each stage is kept and resumed: answers line by line, states shard by shard, training from its last checkpoint.
Torch lives in the reference environment, so the heavy stages are scripts run there.
"""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from runners.core import paths
from runners.core.errors import UserError
from runners.drafter import card, corpus, generate_answers
from runners.drafter.packed_sequences import pack
from runners.profiles.profile import Profile
from runners.profiles.schema import Training
from runners.serve import from_profile, model_files
from runners.serve.scripts import run_script

STAGES = ("answers", "states", "train", "card")


def make(profile: Profile, stages: list[str], say: Callable[[str], None] = print, minutes: float | None = None) -> int:
    """Run the stages in order; UserError in one sentence when something is missing."""
    if profile.training is None:
        raise UserError(f"Profile {profile.name} has no `training` section, so no drafter can be made from it.")
    if "answers" in stages:
        _answers(profile, profile.training, say)
    if "states" in stages:
        _states(profile, profile.training, say)
    if "train" in stages:
        _train(profile, profile.training, say, minutes)
    if "card" in stages:
        _card(profile, profile.training, say)
    return 0


def folder(profile: Profile) -> Path:
    """Answers, states and checkpoints of this machine; git ignores it."""
    return paths.ROOT / "local" / "drafter" / profile.name


def _answers(profile: Profile, training: Training, say: Callable[[str], None]) -> None:

    prompts = corpus.compose(training.prompts, training.seed)
    place = folder(profile) / "answers.jsonl"
    known = {row["id"] for row in generate_answers.read(place)}
    if any(p.id not in known for p in prompts):
        log = paths.BUILD / "logs" / profile.name / f"answers-{time.strftime('%H%M%S')}.log"
        with from_profile.running(profile, training.configuration, log) as live:
            slots = profile.configuration(training.configuration).max_running_requests
            generate_answers.generate(live.base_url, prompts, training, place, slots, say)
    table = generate_answers.table(generate_answers.read(place))
    corpus.FOLDER.mkdir(parents=True, exist_ok=True)
    table.to_parquet(corpus.FOLDER / "answers.parquet", compression="zstd", index=False)
    say(f"{len(table)} answers, {sum(map(len, table['answer_tokens']))} tokens")


def _states(profile: Profile, training: Training, say: Callable[[str], None]) -> None:
    import pandas as pd

    source = corpus.FOLDER / "answers.parquet"
    if not source.is_file():
        raise UserError(f"No {source}; make the answers first (python -m runners drafter --stage answers).")
    work = folder(profile)
    pack(pd.read_parquet(source).to_dict("records"), work / "sequences.safetensors")
    files = model_files.files(profile, None, say)
    digest = hashlib.sha256((work / "sequences.safetensors").read_bytes()).hexdigest()[:12]
    states = work / f"states-reference-{digest}"
    boundaries = ",".join(map(str, training.boundaries))
    run_script("capture_reference", [files.folder, work / "sequences.safetensors", states, boundaries], say)
    (work / "states").unlink(missing_ok=True)
    (work / "states").symlink_to(states.name)


def _train(profile: Profile, training: Training, say: Callable[[str], None], minutes: float | None) -> None:
    work = folder(profile)
    files = model_files.files(profile, None, say)
    settings = numbers(training) | {
        "target": str(files.folder),
        "sequences": str(work / "sequences.safetensors"),
        "states": str(work / "states"),
        "output": str(work / "aligned"),
        "config": config_of(files.folder, training.boundaries),
        "minutes": minutes,
    }
    (work / "aligned.json").write_text(json.dumps(settings, indent=1))
    run_script("train_drafter", [work / "aligned.json"], say)


def numbers(training: Training) -> dict:
    """The numbers of scripts/train_drafter.py's Settings that the profile fixes."""
    names = ("draft_vocab_size", "epochs", "tokens_per_batch", "learning_rate", "steps", "seed")
    return {name: getattr(training, name) for name in names}


def config_of(target_folder: Path, boundaries: list[int]) -> dict:
    """config.json of an EAGLE-3 drafter with the target's own sizes (vllm/transformers_utils/configs/eagle.py)."""
    target = json.loads((target_folder / "config.json").read_text())
    same = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size")
    same += ("rms_norm_eps", "max_position_embeddings", "hidden_act", "bos_token_id", "eos_token_id")
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        **{k: target[k] for k in same},
        "num_hidden_layers": 1,
        "rope_theta": target["rope_parameters"]["rope_theta"],
        "tie_word_embeddings": False,
        "attention_bias": False,
        "torch_dtype": "float16",
        # vLLM: id i is the input of layer i, no +1 (vllm/model_executor/models/llama.py).
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": boundaries, "use_aux_hidden_state": True},
    }


def _card(profile: Profile, training: Training, say: Callable[[str], None]) -> None:
    """Copy the trained drafter to data/drafters/aligned, with a card that says what it was made from."""
    card.publish(profile, folder(profile) / "aligned", "aligned", {}, say)
