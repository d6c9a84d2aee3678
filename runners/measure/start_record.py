"""What is kept of each start of a server: its phases, what was started on what machine, its log."""

from pathlib import Path
from typing import Any

from runners.core import progress, provenance, redact, secrets
from runners.core.files import write_atomic
from runners.measure.cell_context import CellContext
from runners.readers.trim_log import trim_log
from runners.serve import drafter_files, model_files
from runners.serve.command import command, reported_version
from runners.serve.running_server import RunningServer


def add_start(context: CellContext, server: RunningServer) -> None:
    """timeline.json gains this start; environment.json says what was started, on what."""
    phases = [{"name": p.name, "start_s": p.start_s, "end_s": p.end_s} for p in server.timeline]
    start = {"started_at": provenance.now(), "ready_seconds": server.ready_seconds, "phases": phases}
    context.ledger.write_json("timeline.json", [*context.ledger.starts(), start])
    context.ledger.write_json("environment.json", provenance.collect() | _what_was_started(context, server))


def _what_was_started(context: CellContext, server: RunningServer) -> dict[str, Any]:
    """The configuration's part of environment.json. Paths of a person's home and values of secrets are masked."""
    profile, chosen = context.profile, context.chosen
    files = model_files.planned_files(profile, chosen.drafter)
    line = command(profile, context.name, files, port=0)  # the port is any free one: it determines nothing
    spec = profile.engines[chosen.engine]
    reported = reported_version(chosen.engine, server.base_url, context.headers)
    # Our own environments are pinned; only a server from elsewhere can be of another version than the profile's.
    ours = not server.attached and spec.environment is not None
    if not ours and reported and spec.version != "unknown" and spec.version not in reported:
        progress.say(f"{context.name}: the server reports version {reported}, the profile has {spec.version}")
    return {
        "configuration": context.name,
        "engine": chosen.engine,
        "engine_version": spec.version,
        "engine_version_reported": reported,
        "attached": server.attached,
        "argv": None if server.attached else [redact.without_home(word) for word in redact.masked_argv(line.argv)],
        "env": None if server.attached else redact.masked(line.env),
        "checksums": model_files.provenance(files),
        "drafter": drafter_files.digest(profile, chosen.drafter) if chosen.drafter else None,
    }


def keep_log(log: Path, context: CellContext) -> None:
    """server.log gains this start's log, trimmed: the line behind a void cell must not be lost to a later start."""
    if not log.is_file():
        return
    # Masked before it is trimmed: of a secret that a cut divides neither part would be known.
    text = trim_log(redact.without_home(secrets.masked(log.read_text(errors="replace"))), context.reader)
    path = context.ledger.folder / "server.log"
    earlier = path.read_text() if path.is_file() else ""
    write_atomic(path, f"{earlier}=== start of {provenance.now()} ===\n{text}".encode())
