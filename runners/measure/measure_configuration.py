"""Measure one configuration: start (or attach to) its server, walk its missing cells, keep what happened.

A server that dies, stalls or lies voids its cell and never the campaign: it is started once more, and
what is then still missing is void with the reason.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.core import machine_speed, progress, provenance, redact
from runners.core.errors import UserError
from runners.core.files import write_atomic
from runners.core.locks import alone
from runners.core.paths import BUILD
from runners.engines.registry import engine
from runners.measure import cell_key, reference_answers
from runners.measure.cell import CellContext, void_row
from runners.measure.cell import measure as measure_cell
from runners.measure.ledger import Ledger
from runners.profiles import points, prompts
from runners.profiles.points import Point
from runners.profiles.profile import Profile
from runners.readers.registry import reader
from runners.readers.trim_log import trim_log
from runners.serve import drafter_files, model_files
from runners.serve.command import command, reported_version
from runners.serve.from_profile import running
from runners.serve.running_server import RunningServer
from runners.serve.wait_until_ready import ServerDied, ServerStalled

STARTS = 2  # one start and one more after a death


@dataclass
class Outcome:
    """What became of a configuration: measured, partly measured, not measured here (with the reason)."""

    status: str
    reason: str | None = None


def configuration(
    profile: Profile, name: str, depth: str | None, runs: Path, round_: int | None = None, strict: bool = False
) -> Outcome:
    """Measure every missing cell of one configuration (of one round, or of all).

    With `strict` an engine that cannot be installed or started raises (it was asked for by name);
    without, it makes the outcome "not measured here". An unknown name always raises UserError.
    """
    profile.configuration(name)  # an unknown name is an error before anything else
    ledger = Ledger(runs / profile.name / name)
    every = [p for d in profile.workload.depths for p in points.points(profile, d, name)]
    moved = ledger.set_aside({cell_key.key(profile, name, p) for p in every})
    if moved:
        progress.say(f"{name}: {moved} cells were measured with other settings; they are in cells.old.jsonl now")
    todo = cell_key.missing(profile, name, depth, runs, round_)
    if not todo:
        return Outcome("measured")
    with alone(runs / profile.name):
        return _measure(profile, name, depth, runs, todo, strict)


def _measure(profile: Profile, name: str, depth: str | None, runs: Path, todo: list[Point], strict: bool) -> Outcome:
    ledger = Ledger(runs / profile.name / name)
    try:
        instruments = _instruments(profile, name, runs, todo)
        for attempt in range(STARTS):
            todo = _one_start(profile, name, depth, todo, ledger, instruments, attempt)
            if not todo:
                break
        for point in todo:
            reason = f"the server died {STARTS} times, last: {instruments.death or 'without a word'}"
            ledger.append(void_row(profile, name, point, depth, ledger, reason), [])
        outcome = Outcome("partly measured", instruments.death) if instruments.death else Outcome("measured")
    except (UserError, ServerDied, ServerStalled) as error:
        # In a whole report no single configuration ends the campaign; asked for by name, it is an error.
        if strict:
            raise UserError(f"{name}: {error}") from error
        outcome = Outcome("not measured here", f"{error}")
        progress.say(f"{name}: not measured here: {error}")
    if outcome.status != "measured" and ledger.finished():
        outcome.status = "partly measured"
    if ledger.folder.is_dir() or outcome.status != "measured":
        reason = redact.without_home(outcome.reason) if outcome.reason else None
        ledger.write_json("status.json", {"status": outcome.status, "reason": reason})
    return outcome


def _instruments(profile: Profile, name: str, runs: Path, todo: list[Point]) -> CellContext:
    """What the gates compare with: the reference model's answers and the base configuration's."""
    chosen = profile.configuration(name)
    sets = {s: prompts.load(s) for s in profile.workload.prompt_sets}
    expected: dict[str, list[str]] = {}
    if profile.gates.equal_to_reference_floor is not None:
        folder = model_files.files(profile, None, progress.say).folder
        if folder is None:
            raise UserError(
                f"Profile {profile.name}: `equal_to_reference_floor` needs a target with a Hugging Face folder."
            )
        asked = {p.id: p for point in todo for p in point.prompts(sets[point.workload])}
        with progress.span("reference"):
            found = reference_answers.answers(folder, asked.values(), profile.workload.output_tokens, progress.say)
        expected = {prompt: [text] for prompt, text in found.items()}
    base = profile.base_of(name)
    base_texts: dict[str, list[str]] = {}
    if base is not None and base != name:
        # Only answers that passed the base's own gates: two wrong engines must not confirm each other.
        ledger = Ledger(runs / profile.name / base)
        frame, finished = ledger.requests(), ledger.finished()
        good = frame[frame["error"].isna() & frame["key"].isin(finished)]
        base_texts = {prompt: sorted(set(texts)) for prompt, texts in good.groupby("prompt_id")["text"]}
    fields = dict(engine(chosen.engine).request_fields)
    model_name = chosen.attach.model if chosen.attach else None
    return CellContext(sets, expected, base, base_texts, reader(chosen.engine), fields, model_name)


def _one_start(
    profile: Profile, name: str, depth: str | None, todo: list[Point], ledger: Ledger, tools: CellContext, attempt: int
) -> list[Point]:
    """One start of the server over the points still missing; returns those it did not come to."""
    log = BUILD / "logs" / profile.name / f"{name}-{todo[0].round}-{attempt}-{time.strftime('%H%M%S')}.log"
    left = list(todo)
    if profile.configuration(name).attach is None and not profile.simulated and not profile.hardware.gpus:
        # Now: a server that is up spins, or polls, even at rest. Of the cores, which tell nothing of a GPU.
        tools.machine_gflops = machine_speed.gflops()
    try:
        began = time.perf_counter()
        with running(profile, name, log) as live:
            progress.emit("span", what="start", seconds=time.perf_counter() - began, configuration=name)
            _note_start(profile, name, ledger, live)
            warm: int | None = None
            for point in todo:
                if point.concurrency != warm:
                    warm = point.concurrency
                    with progress.span("warm-up", configuration=name):
                        failed = tools.warm_up(profile, live, point)
                    if failed and live.alive():
                        # Alive and mute: waiting out every cell's time-out would tell nothing more.
                        tools.death = f"no answer in the warm-up at C={point.concurrency}: {failed}"
                        break
                row, results = measure_cell(profile, name, point, depth, ledger, tools, live)
                if "not quiet" in " ".join(row["reasons"]) and live.alive():
                    # Noise is not the configuration's doing: both attempts stay in the ledger.
                    ledger.append(row, results)
                    row, results = measure_cell(profile, name, point, depth, ledger, tools, live)
                ledger.append(row, results)
                left.remove(point)
                if not live.alive():
                    tools.death = (live.cause() or ("no error in its log", ""))[0]
                    progress.say(f"{name}: the server died: {tools.death}")
                    break
    except (ServerDied, ServerStalled) as error:
        if left == todo and not ledger.finished():
            raise  # it never served a cell: not measured here
        tools.death = str(error)
    finally:
        _keep_log(log, ledger, tools)
    return left


def _keep_log(log: Path, ledger: Ledger, tools: CellContext) -> None:
    """server.log gains this start's log, trimmed: the line behind a void cell must not be lost to a later start."""
    if log.is_file():
        text = trim_log(redact.without_home(log.read_text(errors="replace")), tools.reader)
        place = ledger.folder / "server.log"
        before = place.read_text() if place.is_file() else ""
        write_atomic(place, f"{before}=== start of {provenance.now()} ===\n{text}".encode())


def _note_start(profile: Profile, name: str, ledger: Ledger, live: RunningServer) -> None:
    """timeline.json gains this start; environment.json says what was started, on what."""
    starts: list[dict[str, Any]] = ledger.starts()
    phases = [{"name": p.name, "start_s": p.start_s, "end_s": p.end_s} for p in live.timeline]
    starts.append({"started_at": provenance.now(), "ready_seconds": live.ready_seconds, "phases": phases})
    ledger.write_json("timeline.json", starts)
    chosen = profile.configuration(name)
    files = model_files.planned_files(profile, chosen.drafter)
    line = command(profile, name, files, port=0)
    version, reported = profile.engines[chosen.engine].version, reported_version(chosen.engine, live.base_url)
    ours = not live.attached and profile.engines[chosen.engine].environment is not None
    if not ours and reported and version not in reported:
        progress.say(f"{name}: the server says it is version {reported}, the profile says {version}")
    facts = provenance.collect() | {
        "configuration": name,
        "engine": chosen.engine,
        "engine_version": version,
        "engine_version_reported": reported,
        "attached": live.attached,
        "argv": None if live.attached else [redact.without_home(word) for word in redact.masked_argv(line.argv)],
        "env": None if live.attached else redact.masked(line.env),
        "checksums": model_files.provenance(files),
        "drafter": drafter_files.digest(profile, chosen.drafter) if chosen.drafter else None,
    }
    ledger.write_json("environment.json", facts)
