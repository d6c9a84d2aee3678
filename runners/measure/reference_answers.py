"""What the reference model answers greedily: computed once a prompt and output length, and kept in the cache.

The reference is the target in transformers (scripts/reference_greedy.py), without a serving engine: an engine that
answers otherwise serves another model.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from runners.core import locks, paths
from runners.core.files import write_atomic
from runners.core.hashes import sha256
from runners.core.paths import SCRIPTS
from runners.core.progress import Progress, quiet
from runners.engines import environments
from runners.profiles.prompts import Prompt
from runners.serve.scripts import ask_script

BATCH = 20  # prompts at once


def answers(folder: Path, prompts: Iterable[Prompt], output_tokens: int, progress: Progress = quiet) -> dict[str, str]:
    """prompt id -> text of `output_tokens` greedy tokens, the end-of-text token ignored.

    Only prompts without an answer in the cache are computed. Raises EngineUnavailable when the reference environment
    cannot be installed, UserError when the script fails.
    """
    # All that an answer depends on: another script or other releases of the libraries start a file of their own.
    script = sha256(SCRIPTS / "reference_greedy.py")
    facts = f"{folder.name} {output_tokens} {script} {environments.folder('reference').name}"
    cache = paths.cache() / "reference" / f"{output_tokens}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.json"
    digests = [(p, _digest(p)) for p in prompts]
    with locks.locked(cache.with_suffix(".lock")):
        known: dict[str, str] = json.loads(cache.read_text()) if cache.is_file() else {}
        missing = {digest: p for p, digest in digests if digest not in known}
        if missing:
            environments.ensure("reference", progress)
            progress(f"reference model: answering {len(missing)} prompts, once")
            known |= _compute(folder, missing, output_tokens)
            write_atomic(cache, json.dumps(known).encode())
    return {p.id: known[digest] for p, digest in digests}


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
