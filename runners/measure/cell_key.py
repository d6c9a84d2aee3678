"""A cell's key: the hash of all that determines it, contents and not paths."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.core import paths, provenance, redact
from runners.core.hashes import sha256
from runners.profiles import prompt_files
from runners.profiles.attach import Attach
from runners.profiles.points import Point
from runners.profiles.profile import Profile
from runners.serve import drafter_files, model_files
from runners.serve.command import command, slot_field

# A script of ours that starts an engine is named in a key by its content. The content that published cells were
# measured with keeps the words that their keys were hashed from, so that no cell is set aside because a file moved.
PUBLISHED_SCRIPTS = {
    "07322c137a1fc71ecf6b45dbb738c2d137a98876f1daf39d5318412bed7631fc": "$ROOT/runners/scripts/llamacpp_server.py",
}


def neutral_word(word: str) -> str:
    """A word of a command line as a key holds it: one of our own scripts by its content, anything else as it is.

    A script that moved is the same script; one with another content may serve otherwise.
    """
    path = Path(word)
    if path.suffix != ".py" or not path.is_relative_to(paths.ROOT / "runners"):
        return word
    digest = sha256(path)
    return PUBLISHED_SCRIPTS.get(digest, f"script:{digest[:16]}")


@dataclass(frozen=True)
class Place:
    """Where a cell stands in its campaign."""

    campaign: str
    start: int  # life of the servers, counted from 0 in the campaign
    block: int  # counted from 0 in the campaign; the sides of one block share it
    order: int = 0  # in the block


def settings_facts(profile: Profile, configuration: str, point: Point, preset: str | None) -> dict[str, Any]:
    """All that determines a cell but its place, by name. Paths are neutral and the port is left out: they change
    nothing measured.

    No name and no value here may change without need: each change sets every published cell aside.
    """
    chosen = profile.configuration(configuration)
    files = model_files.planned_files(profile, chosen.drafter)
    line = command(profile, configuration, files, port=0)
    spec = profile.engines[chosen.engine]
    facts: dict[str, Any] = {}
    if chosen.drafter and profile.drafters[chosen.drafter].path is not None:
        # A folder's name says nothing of its weights; a drafter that we make has a hash in its path already.
        facts["drafter"] = drafter_files.digest(profile, chosen.drafter)
    if slot := slot_field(profile, configuration, point.concurrency):
        # An engine with slots, one for each worker of the client. The fact keeps the name of published keys.
        facts["place_field"] = slot
    if point.rate is not None:
        # An open loop: requests arrive at this rate. A closed loop's key names neither, as before there were rates.
        facts |= {"load": "open", "rate": point.rate, "seconds": point.seconds}
    if profile.workload.body:
        facts["body"] = profile.workload.body
    if profile.workload.ends != "fixed":
        facts["ends"] = profile.workload.ends
    return facts | {
        "profile": profile.name,
        "configuration": configuration,
        "engine": chosen.engine,
        "engine_version": spec.version,
        # Without secrets: another key is not another setting.
        "argv": redact.without_home(" ".join(map(neutral_word, redact.masked_argv(line.argv)[1:]))),
        "env": redact.masked(line.env),
        "prompts": prompt_files.load(point.workload, profile.workload.prompt_files).sha256,
        "attach": _address(chosen.attach),
        "target": profile.target.file_sha256 or profile.target.path or profile.target.name,
        "concurrency": point.concurrency,
        # How many arrive in an open loop's window is chance.
        "window": [point.requests, profile.preset(preset).window_seconds] if point.rate is None else None,
        "output_tokens": profile.output_tokens(preset),
        "temperature": profile.workload.temperature,
        "machine": provenance.machine_id(),
    }


def _address(attach: Attach | None) -> str | list[Any] | None:
    """Where a server is that runs already, with the fields that its requests alone have."""
    if attach is None:
        return None
    return [attach.url, attach.body] if attach.body else attach.url


def settings(profile: Profile, configuration: str, point: Point, preset: str | None) -> str:
    """The hash of a cell's settings: rows with equal ones may be averaged."""
    return hash_facts(settings_facts(profile, configuration, point, preset))


def key(settings: str, place: Place) -> str:
    """The cell's key: 16 hexadecimal digits, of its settings and its place."""
    return hash_facts({"settings": settings, "campaign": place.campaign, "start": place.start, "block": place.block})


def hash_facts(facts: dict[str, Any]) -> str:
    """The hash of all that determines a cell; the same facts give the same key on any machine."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]
