"""`specverdict align`: everything the drafter and alignment chapters show, measured on real engines.

Writes into <runs>/<profile>/alignment/: slots.csv and drift.csv (states of each source against the reference),
replay.jsonl (served against replayed), slots_of_llamacpp.jsonl (its drafts sampled in the graph and on the host, by
concurrency), siblings.csv (accept length against the target's drift) and hypotheses.jsonl (each cause, served and
replayed). Each part is kept and not measured again while what it was made from is the same (made_from.json).
"""

import json
from pathlib import Path

import pandas as pd

from runners.core import files, hashes, locks
from runners.core.errors import UserError
from runners.core.paths import ROOT
from runners.core.progress import Progress
from runners.drafter import diagnose, fault_injection, faults, hidden_states, packed_sequences, replay, target_drift
from runners.engines.registry import all_engines, engine
from runners.profiles import prompts
from runners.profiles.profile import Profile
from runners.serve import drafter_files

PARTS = ("states", "replay", "slots", "siblings", "hypotheses", "confusion")
SEQUENCES = 16  # held-out answers whose states are compared at every boundary
PROMPTS = 16  # of each set: what replay and served are compared on
PROMPTS_A_CAUSE = 16


def run(
    profile: Profile,
    runs: Path,
    parts: list[str],
    say: Progress = print,
    only: str | None = None,
    causes: list[str] | None = None,
) -> int:
    """Measure the parts; `only` one configuration's and some `causes`, where given.

    UserError when the profile serves no drafter of its own, or for an unknown configuration or cause.
    """
    variants = profile.training.variants if profile.training else {}
    found = [
        n
        for n, c in profile.configurations.items()
        if c.drafter and profile.drafters[c.drafter].path and c.drafter not in variants and not c.attach
    ]
    # The engine that starts in a second goes first: an interrupted run has then something for every part.
    if only is not None:
        profile.configuration(only)
        found = [n for n in found if n == only]
    unknown = sorted(set(causes or ()) - set(faults.CAUSES))
    if unknown:
        raise UserError(f"No cause '{unknown[0]}'; there are {', '.join(faults.CAUSES)}.")
    found.sort(key=lambda n: (engine(profile.configurations[n].engine).start_seconds, n))
    if not found or profile.training is None:
        raise UserError(f"Profile {profile.name} serves no drafter of its own; train one first (make drafter).")
    out = runs / profile.name / "alignment"
    work = ROOT / "local" / "drafter" / profile.name / "served"
    with locks.alone(runs / profile.name):
        if "states" in parts:
            states(profile, out, work, say)
        if "replay" in parts:
            replayed(profile, found, out, work, say)
        longest = _longest(profile, found)
        if "slots" in parts:
            slots_of_llamacpp(profile, longest, out, work, say)
        if "siblings" in parts:
            of_siblings(profile, profile.configurations[found[0]].drafter, out, work, say)
        if "hypotheses" in parts:
            for name in longest:
                asked = prompts.load("chat").take(PROMPTS_A_CAUSE)
                tokens = profile.workload.output_tokens
                fault_injection.serve_all(profile, name, asked, tokens, 4, out, work, say, causes)
        if "confusion" in parts:
            confusion(profile, runs, found[0], out, say)
    return 0


def _longest(profile: Profile, names: list[str]) -> list[str]:
    """Of an engine's configurations with one drafter the one with the longest chain: it shows every position."""
    best: dict[tuple[str, str | None], str] = {}
    for name in sorted(names, key=lambda n: profile.configurations[n].k or 0):
        chosen = profile.configurations[name]
        best[chosen.engine, chosen.drafter] = name
    return [n for n in names if n in best.values()]


def confusion(profile: Profile, runs: Path, name: str, out: Path, say: Progress) -> None:
    """confusion.csv: for each fault put in, the cause that `diagnose` names first, without knowing it."""
    rows = []
    for change in faults.CAUSES:
        changed, configuration = fault_injection.with_cause(profile, name, change)
        found = diagnose.diagnose(changed, configuration, runs, say)
        first = found.causes[0] if found.causes else None
        rows.append(
            {
                "fault": change,
                "named": first.name if first else "none",
                "gain": first.gain if first else None,
                "second": found.causes[1].name if len(found.causes) > 1 else "",
            }
        )
        say(f"{change}: diagnosed as {rows[-1]['named']}")
    out.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).round(3).to_csv(out / "confusion.csv", index=False)


def states(profile: Profile, out: Path, work: Path, say: Progress) -> None:
    """Every boundary from each source for the same held-out answers, against the reference."""
    sequences = work / "held-out.safetensors"
    packed_sequences.pack_held_out(sequences, SEQUENCES)
    facts = {"text": hashes.sha256(sequences), "target": profile.target.file_sha256}
    if _made(out, "drift.csv", facts):
        return
    every = list(range(profile.target.layers))
    reference = hidden_states.load(replay.capture(profile, "reference", sequences, every, say))
    slots, drifts = [], []
    for source in (kind for kind, found in all_engines().items() if kind in profile.engines and found.capture_script):
        captured = hidden_states.load(replay.capture(profile, source, sequences, every, say))
        chosen = hidden_states.only(captured, profile.training.boundaries)
        slots.append(hidden_states.slot_map(chosen, reference).assign(source=source))
        drifts.append(hidden_states.drift(captured, reference))
    out.mkdir(parents=True, exist_ok=True)
    pd.concat(slots).round(7).to_csv(out / "slots.csv", index=False)
    pd.concat(drifts).round(7).to_csv(out / "drift.csv", index=False)
    _note(out, "drift.csv", facts)
    say(f"states of {SEQUENCES} answers, {reference.values.shape[0]} tokens, at {len(every)} boundaries compared")


def replayed(profile: Profile, found: list[str], out: Path, work: Path, say: Progress) -> None:
    """Served and replayed accept length of each own drafter, by prompt set and concurrency."""
    kept = files.KeptRows(out / "replay.jsonl", ["configuration", "workload"])
    for name in found:
        for workload in profile.workload.prompt_sets:
            facts = {"configuration": name, "workload": workload, "drafter": _digest(profile, name)}
            if kept.has(facts):
                continue
            asked = prompts.load(workload).take(PROMPTS)
            tokens = profile.workload.output_tokens
            got = replay.compare(profile, name, asked, tokens, profile.workload.concurrencies, work, say)
            kept.replace(facts, [r | {"output_tokens": tokens} for r in got])


def of_siblings(profile: Profile, drafter: str, out: Path, work: Path, say: Progress) -> None:
    """siblings.csv: the drafter replayed on targets that moved away from its own in growing steps."""
    asked = prompts.load("chat").take(PROMPTS)
    place = work.parent / "siblings"
    place.mkdir(parents=True, exist_ok=True)
    packed_sequences.pack_held_out(place / "held-out.safetensors", SEQUENCES)
    text = hashes.sha256(place / "held-out.safetensors")
    facts = {"text": text, "drafter": drafter_files.digest(profile, drafter), "scales": target_drift.SCALES}
    if _made(out, "siblings.csv", facts):
        return
    tokens = profile.workload.output_tokens
    table = target_drift.measure(profile, drafter, asked, tokens, place / "held-out.safetensors", place, say)
    out.mkdir(parents=True, exist_ok=True)
    table.round(5).to_csv(out / "siblings.csv", index=False)
    _note(out, "siblings.csv", facts)


def slots_of_llamacpp(profile: Profile, found: list[str], out: Path, work: Path, say: Progress) -> None:
    """The same drafter with draft tokens sampled in the graph (llama.cpp's default) and on the host."""
    kept = files.KeptRows(out / "slots_of_llamacpp.jsonl", ["draft_sampling"])
    names = [n for n in found if engine(profile.configurations[n].engine).host_sampling_flag]
    if not names:
        return
    host_sampling = engine(profile.configurations[names[0]].engine).host_sampling_flag
    asked = prompts.load("chat").take(8)
    for where, flag in (("host", True), ("graph", False)):
        facts = {"draft_sampling": where, "drafter": _digest(profile, names[0])}
        if kept.has(facts):
            continue
        content = profile.model_dump()
        content["configurations"][names[0]]["flags"][host_sampling] = flag
        changed = type(profile).model_validate(content)
        concurrencies = profile.workload.concurrencies
        got = replay.compare(changed, names[0], asked, profile.workload.output_tokens, concurrencies, work, say)
        kept.replace(facts, got)


def _digest(profile: Profile, configuration: str) -> str:
    return drafter_files.digest(profile, profile.configurations[configuration].drafter)


def _notes(out: Path) -> dict[str, dict]:
    place = out / "made_from.json"
    return files.read_json(place, dict, "delete it: what it names is made again") if place.is_file() else {}


def _made(out: Path, name: str, facts: dict) -> bool:
    """Is the file there, and was it made from the same text, target and drafter?"""
    return (out / name).is_file() and _notes(out).get(name) == facts


def _note(out: Path, name: str, facts: dict) -> None:
    files.write_atomic(out / "made_from.json", json.dumps(_notes(out) | {name: facts}, indent=1).encode())
