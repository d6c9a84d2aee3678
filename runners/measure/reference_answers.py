"""What the reference model answers greedily: computed once a prompt and output length, and kept in the cache."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from runners.core import locks, paths
from runners.core.hashes import sha256
from runners.core.paths import SCRIPTS
from runners.core.progress import Progress, quiet
from runners.engines import environments
from runners.profiles.prompts import Prompt
from runners.serve.scripts import ask_script

BATCH = 20


def answers(folder: Path, prompts: Iterable[Prompt], output_tokens: int, progress: Progress = quiet) -> dict[str, str]:
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
            environments.ensure("reference", progress)
            progress(f"reference model: answering {len(missing)} prompts, once")
            known |= _compute(folder, missing, output_tokens)
            part = place.with_suffix(".part")
            part.write_text(json.dumps(known))
            os.replace(part, place)
    return {p.id: known[_digest(p)] for p in asked}


def _digest(prompt: Prompt) -> str:
    return hashlib.sha256(json.dumps(prompt.messages).encode()).hexdigest()[:16]


def _compute(folder: Path, prompts: dict[str, Prompt], output_tokens: int) -> dict[str, str]:
    """digest -> answer, by one run of scripts/reference_greedy.py."""
    request = {
        "prompts": [{"id": digest, "messages": list(p.messages)} for digest, p in prompts.items()],
        "max_new_tokens": output_tokens,
        "batch": BATCH,
    }
    answers: dict[str, str] = ask_script("reference_greedy", request, [folder])["answers"]
    return answers
