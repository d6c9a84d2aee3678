"""What the reference model answers greedily: computed once per target, prompt set and length, and kept in the cache."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from runners import environments, paths
from runners.engines import SCRIPTS
from runners.errors import UserError
from runners.model import sha256
from runners.prompts import PromptSet

BATCH = 16


def answers(
    folder: Path, prompts: PromptSet, output_tokens: int, progress: Callable[[str], None] = lambda _: None
) -> dict[str, str]:
    """prompt id -> text of `output_tokens` greedy tokens, the end-of-text token ignored.

    Raises EngineUnavailable without the reference environment, UserError when the script fails.
    """
    script = SCRIPTS / "reference_greedy.py"
    facts = f"{folder.name} {prompts.sha256} {output_tokens} {sha256(script)} {environments.folder('reference').name}"
    name = f"{prompts.id}-{output_tokens}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.json"
    place = paths.cache() / "reference" / name
    if not place.is_file():
        python = environments.ensure("reference", progress)
        progress(f"reference answers for the prompt set {prompts.id}: {len(prompts.prompts)} prompts, once")
        with environments.locked(place.with_suffix(".lock")):
            if not place.is_file():
                _compute(python, script, folder, prompts, output_tokens, place)
    return json.loads(place.read_text())["answers"]


def _compute(python: Path, script: Path, folder: Path, prompts: PromptSet, output_tokens: int, place: Path) -> None:
    request = {
        "prompts": [{"id": p.id, "messages": list(p.messages)} for p in prompts.prompts],
        "max_new_tokens": output_tokens,
        "batch": BATCH,
    }
    asked, part = place.with_suffix(".request.json"), place.with_suffix(".part")
    asked.write_text(json.dumps(request))
    done = subprocess.run(
        [str(python), str(script), str(folder), str(asked), str(part)], capture_output=True, text=True
    )
    asked.unlink()
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(f"The reference model gave no answers for prompt set {prompts.id}: {last[:300]}")
    os.replace(part, place)
