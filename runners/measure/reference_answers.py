"""What the reference model answers greedily: computed once a prompt and output length, and kept in the cache."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from runners.core import locks, paths
from runners.core.errors import UserError
from runners.core.hashes import sha256
from runners.core.paths import SCRIPTS
from runners.engines import environments
from runners.profiles.prompts import Prompt

BATCH = 20


def answers(
    folder: Path, prompts: Iterable[Prompt], output_tokens: int, progress: Callable[[str], None] = lambda _: None
) -> dict[str, str]:
    """prompt id -> text of `output_tokens` greedy tokens, the end-of-text token ignored.

    Only prompts that were never answered are asked. Raises EngineUnavailable without the reference environment,
    UserError when the script fails.
    """
    script = SCRIPTS / "reference_greedy.py"
    facts = f"{folder.name} {output_tokens} {sha256(script)} {environments.folder('reference').name}"
    place = paths.cache() / "reference" / f"{output_tokens}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.json"
    asked = list(prompts)
    wanted = {_digest(p): p for p in asked}
    with locks.locked(place.with_suffix(".lock")):
        known: dict[str, str] = json.loads(place.read_text()) if place.is_file() else {}
        missing = {digest: p for digest, p in wanted.items() if digest not in known}
        if missing:
            python = environments.ensure("reference", progress)
            progress(f"reference model: answering {len(missing)} prompts, once")
            known |= _compute(python, script, folder, missing, output_tokens, place)
            part = place.with_suffix(".part")
            part.write_text(json.dumps(known))
            os.replace(part, place)
    return {p.id: known[_digest(p)] for p in asked}


def _digest(prompt: Prompt) -> str:
    return hashlib.sha256(json.dumps(prompt.messages).encode()).hexdigest()[:16]


def _compute(
    python: Path, script: Path, folder: Path, prompts: dict[str, Prompt], output_tokens: int, place: Path
) -> dict[str, str]:
    """digest -> answer, by one run of scripts/reference_greedy.py."""
    request = {
        "prompts": [{"id": digest, "messages": list(p.messages)} for digest, p in prompts.items()],
        "max_new_tokens": output_tokens,
        "batch": BATCH,
    }
    asked, told = place.with_suffix(".request.json"), place.with_suffix(".answers.json")
    asked.write_text(json.dumps(request))
    argv = [str(python), str(script), str(folder), str(asked), str(told)]
    # Every core: a caller's OMP_NUM_THREADS is meant for something else.
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    asked.unlink()
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(f"The reference model gave no answers: {last[:300]}")
    found = json.loads(told.read_text())["answers"]
    told.unlink()
    return found
