"""Make the profile's own EAGLE-3 drafter: answers -> states -> training -> data/drafters (`make drafter`).

Each stage is kept and resumed: answers line by line, states shard by shard, training from its last checkpoint.
Torch lives in the reference environment, so the heavy stages are scripts run there.
"""

import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from runners import answers, corpus, drafter_card, environments, model, paths
from runners.engines import SCRIPTS
from runners.errors import UserError
from runners.profile import Profile
from runners.profile_parts import Training

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
    from runners import measure

    prompts = corpus.compose(training.prompts, training.seed)
    place = folder(profile) / "answers.jsonl"
    known = {row["id"] for row in answers.read(place)}
    if any(p.id not in known for p in prompts):
        log = paths.BUILD / "logs" / profile.name / f"answers-{time.strftime('%H%M%S')}.log"
        with measure.running(profile, training.configuration, log) as live:
            slots = profile.configuration(training.configuration).max_running_requests
            answers.generate(live.base_url, prompts, training, place, slots, say)
    table = answers.table(answers.read(place))
    corpus.FOLDER.mkdir(parents=True, exist_ok=True)
    table.to_parquet(corpus.FOLDER / "answers.parquet", compression="zstd", index=False)
    say(f"{len(table)} answers, {sum(map(len, table['answer_tokens']))} tokens")


def pack(rows: list[dict], output: Path) -> None:
    """The sequences in one safetensors file: `ids`, `offsets`; per sequence `prompt` and `held_out`."""
    sequences = [[*r["prompt_tokens"], *r["answer_tokens"]] for r in rows]
    offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
    output.parent.mkdir(parents=True, exist_ok=True)
    tensors = {
        "ids": np.concatenate([np.asarray(s, dtype=np.int32) for s in sequences]),
        "offsets": offsets,
        "prompt": np.asarray([len(r["prompt_tokens"]) for r in rows], dtype=np.int32),
        "held_out": np.asarray([r["part"] == "held-out" for r in rows], dtype=np.uint8),
    }
    save_file(tensors, output)


def pack_held_out(output: Path, count: int) -> None:
    """The first `count` greedy answers of the corpus's held-out part, packed."""
    import pandas as pd

    rows = pd.read_parquet(corpus.FOLDER / "answers.parquet")
    chosen = rows[(rows["part"] == "held-out") & (rows["temperature"] == 0)].head(count)
    pack(chosen.to_dict("records"), output)


def _states(profile: Profile, training: Training, say: Callable[[str], None]) -> None:
    import pandas as pd

    source = corpus.FOLDER / "answers.parquet"
    if not source.is_file():
        raise UserError(f"No {source}; make the answers first (python -m runners drafter --stage answers).")
    work = folder(profile)
    pack(pd.read_parquet(source).to_dict("records"), work / "sequences.safetensors")
    files = model.files(profile, None, say)
    digest = hashlib.sha256((work / "sequences.safetensors").read_bytes()).hexdigest()[:12]
    states = work / f"states-reference-{digest}"
    boundaries = ",".join(map(str, training.boundaries))
    run_script("capture_reference", [files.folder, work / "sequences.safetensors", states, boundaries], say)
    (work / "states").unlink(missing_ok=True)
    (work / "states").symlink_to(states.name)


def _train(profile: Profile, training: Training, say: Callable[[str], None], minutes: float | None) -> None:
    work = folder(profile)
    files = model.files(profile, None, say)
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
    drafter_card.publish(profile, folder(profile) / "aligned", "aligned", {}, say)


def ask_script(name: str, asked: dict) -> Any:
    """Run scripts/<name>.py REQUEST RESULT and return what it told; files of this call alone, so calls may overlap."""
    with tempfile.TemporaryDirectory() as scratch:
        request, result = Path(scratch) / "request.json", Path(scratch) / "result.json"
        request.write_text(json.dumps(asked))
        run_script(name, [request, result], lambda _: None)
        return json.loads(result.read_text())


def run_script(name: str, words: list, say: Callable[[str], None], environment: str = "reference") -> None:
    """Run scripts/<name>.py in an engine's environment and pass its lines on; UserError with its last words."""
    python = environments.ensure(environment, say)
    # Every core: a caller's OMP_NUM_THREADS is meant for something else.
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    argv = [str(python), str(SCRIPTS / f"{name}.py"), *map(str, words)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    last = ""
    try:
        for line in child.stdout:
            last = line.strip() or last
            say(line.rstrip())
    finally:
        if child.poll() is None:
            child.terminate()
        child.wait()
    if child.returncode != 0:
        raise UserError(f"{name} stopped: {last[:300]}; run the same command again to go on.")
