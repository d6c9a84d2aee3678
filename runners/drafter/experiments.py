"""`specverdict align`: everything that the drafter and alignment chapters show, measured on real engines.

Writes into <runs>/<profile>/alignment/:
    slots.csv, drift.csv    part `states`: the states of each source against the reference
    replay.jsonl            part `replay`: served against replayed accept length
    llamacpp_slots.jsonl    part `slots`: llama.cpp's drafts sampled in the graph and on the host, by concurrency
    target_drift.csv        part `target-drift`: accept length against how far the target has drifted
    faults.jsonl            part `faults`: each fault, served and replayed
    confusion.csv           part `confusion`: each fault, and what `diagnose` names first
    made_from.json          what slots.csv, drift.csv and target_drift.csv were made from, and when
A row of the other files has `measured_at`, when its serving began: a finding is tested by later measurements alone.
A part is measured again only when what it was made from has changed.
"""

import json
from pathlib import Path

import pandas as pd

from runners.core import files, hashes, locks, provenance
from runners.core.errors import UserError
from runners.core.paths import ROOT
from runners.core.progress import Progress
from runners.drafter import (
    diagnose,
    fault_injection,
    faults,
    hidden_states,
    packed_sequences,
    published_results,
    replay,
    target_drift,
)
from runners.drafter.serve_and_count import ServeSpec
from runners.engines.registry import all_engines, engine
from runners.profiles import prompt_files, prompts
from runners.profiles.profile import Profile
from runners.serve import drafter_files

PARTS = ("states", "replay", "slots", "target-drift", "faults", "confusion")
SEQUENCES = 16  # held-out answers whose states are compared at every boundary
PROMPTS = 16  # of each prompt set: what served and replayed are compared on
SLOT_PROMPTS = 8
FAULT_CONCURRENCY = 4  # enough that vLLM's drafting for a whole batch shows


def run(
    profile: Profile,
    runs: Path,
    parts: list[str],
    say: Progress = print,
    only: str | None = None,
    only_faults: list[str] | None = None,
) -> int:
    """Measure the parts; of one configuration (`only`) and of some faults (`only_faults`), where given.

    UserError when the profile serves no drafter of its own, or for an unknown configuration or fault.
    """
    unknown = sorted(set(only_faults or ()) - set(faults.MEASURED))
    if unknown:
        raise UserError(f"There is no fault '{unknown[0]}'; there are {', '.join(faults.MEASURED)}.")
    found = _with_own_drafter(profile, only)
    if not found or profile.training is None:
        raise UserError(f"Profile {profile.name} serves no drafter of its own; train one first (make drafter).")
    out = runs / profile.name / "alignment"
    work = ROOT / "local" / "drafter" / profile.name / "served"
    longest = _longest(profile, found)
    with locks.alone(runs / profile.name):
        if "states" in parts:
            states(profile, out, work, say)
        if "replay" in parts:
            served_and_replayed(profile, found, out, work, say)
        if "slots" in parts:
            llamacpp_slots(profile, longest, out, work, say)
        if "target-drift" in parts:
            drifted_targets(profile, _drafter(profile, found[0]), out, work, say)
        if "faults" in parts:
            for name in longest:
                fault_injection.measure_faults(_chat(profile, name, [FAULT_CONCURRENCY]), out, work, say, only_faults)
        if "confusion" in parts:
            confusion(profile, runs, found[0], out, say)
    return 0


def _with_own_drafter(profile: Profile, only: str | None) -> list[str]:
    """Configurations that serve a drafter of the profile's own, without the variants that were trained with a fault."""
    variants = profile.training.variants if profile.training else {}
    if only is not None:
        profile.configuration(only)  # an unknown name is refused here
    found = [
        n
        for n, c in profile.configurations.items()
        if c.drafter
        and profile.drafters[c.drafter].path
        and c.drafter not in variants
        and not c.stands_alone
        and only in (None, n)
    ]
    # The engine that starts soonest goes first: an interrupted run then has something for every part.
    return sorted(found, key=lambda n: (engine(profile.configurations[n].engine).start_seconds, n))


def _chat(profile: Profile, name: str, concurrencies: list[int], count: int = PROMPTS) -> ServeSpec:
    """The first chat prompts on one configuration."""
    chosen = prompts.load("chat").take(count)
    return ServeSpec(profile, name, chosen, profile.workload.output_tokens, concurrencies)


def _longest(profile: Profile, names: list[str]) -> list[str]:
    """Of an engine's configurations with one drafter the one with the longest chain: it shows every position."""
    best: dict[tuple[str, str | None], str] = {}
    for name in sorted(names, key=lambda n: profile.configurations[n].k or 0):
        chosen = profile.configurations[name]
        best[chosen.engine, chosen.drafter] = name
    return [n for n in names if n in best.values()]


def confusion(profile: Profile, runs: Path, name: str, out: Path, say: Progress) -> None:
    """confusion.csv: for each fault, what `diagnose` names first without knowing it.

    Columns: fault, named, gain (of accept length when undone), second (the name after it).
    """
    rows = []
    for fault in faults.MEASURED:
        faulty, configuration = fault_injection.with_fault(profile, name, fault)
        likely = diagnose.diagnose(faulty, configuration, runs, say).likely
        first = likely[0] if likely else None
        rows.append(
            {
                "fault": fault,
                "named": first.name if first else "none",
                "gain": first.gain if first else None,
                "second": likely[1].name if len(likely) > 1 else "",
            }
        )
        say(f"{fault}: diagnosed as {rows[-1]['named']}")
    out.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).round(3).to_csv(out / "confusion.csv", index=False)


def states(profile: Profile, out: Path, work: Path, say: Progress) -> None:
    """slots.csv and drift.csv: every boundary from each source for the same held-out answers, against the reference."""
    sequences = work / "held-out.safetensors"
    packed_sequences.pack_held_out(sequences, SEQUENCES)
    facts = {"text": hashes.sha256(sequences), "target": profile.target.file_sha256}
    if _made(out, "drift.csv", facts):
        return
    every = list(range(profile.target.layers))
    began = provenance.now()
    reference = hidden_states.load(replay.capture(profile, "reference", sequences, every, say))
    slots, drifts = [], []
    for source in (kind for kind, found in all_engines().items() if kind in profile.engines and found.capture_script):
        captured = hidden_states.load(replay.capture(profile, source, sequences, every, say))
        chosen = hidden_states.only(captured, profile.required_training().boundaries)
        slots.append(hidden_states.slot_map(chosen, reference).assign(source=source))
        drifts.append(hidden_states.drift(captured, reference))
    out.mkdir(parents=True, exist_ok=True)
    pd.concat(slots).round(7).to_csv(out / "slots.csv", index=False)
    pd.concat(drifts).round(7).to_csv(out / "drift.csv", index=False)
    _note(out, "drift.csv", facts, began)
    say(f"states of {SEQUENCES} answers, {reference.values.shape[0]} tokens, at {len(every)} boundaries compared")


def served_and_replayed(profile: Profile, found: list[str], out: Path, work: Path, say: Progress) -> None:
    """replay.jsonl: served and replayed accept length of each own drafter, by prompt set and concurrency."""
    kept = files.KeptRows(out / "replay.jsonl", ["configuration", "workload"])
    for name in found:
        for workload in profile.workload.prompt_sets:
            facts = {"configuration": name, "workload": workload, "drafter": _digest(profile, name)}
            if kept.has(facts):
                continue
            chosen = prompt_files.load(workload, profile.workload.prompt_files).take(PROMPTS)
            tokens = profile.workload.output_tokens
            rows = replay.compare(ServeSpec(profile, name, chosen, tokens, profile.workload.concurrencies), work, say)
            kept.replace(facts, [r | {"output_tokens": tokens} for r in rows])


def drifted_targets(profile: Profile, drafter: str, out: Path, work: Path, say: Progress) -> None:
    """target_drift.csv: the drafter replayed on targets that moved away from its own in growing steps."""
    folder = work.parent / "target-drift"
    text = folder / "held-out.safetensors"
    packed_sequences.pack_held_out(text, SEQUENCES)
    digest = drafter_files.digest(profile, drafter)
    # A list, as it is read back from JSON.
    facts = {"text": hashes.sha256(text), "drafter": digest, "scales": list(target_drift.SCALES)}
    if _made(out, target_drift.FILE, facts):
        return
    chosen = prompts.load("chat").take(PROMPTS)
    spec = target_drift.DriftSpec(profile, drafter, chosen, profile.workload.output_tokens, text, folder)
    began = provenance.now()
    table = target_drift.measure(spec, say)
    out.mkdir(parents=True, exist_ok=True)
    table.round(5).to_csv(out / target_drift.FILE, index=False)
    _note(out, target_drift.FILE, facts, began)


def llamacpp_slots(profile: Profile, found: list[str], out: Path, work: Path, say: Progress) -> None:
    """llamacpp_slots.jsonl: the same drafter, its tokens sampled in the graph (llama.cpp's default) and on the host."""
    kept = files.KeptRows(out / "llamacpp_slots.jsonl", ["draft_sampling"])
    names = [n for n in found if engine(profile.configurations[n].engine).host_sampling_flag]
    if not names:
        return
    host_sampling = engine(profile.configurations[names[0]].engine).host_sampling_flag
    for where, flag in (("host", True), ("graph", False)):
        facts = {"draft_sampling": where, "drafter": _digest(profile, names[0])}
        if kept.has(facts):
            continue
        content = profile.model_dump()
        content["configurations"][names[0]]["flags"][host_sampling] = flag
        changed = type(profile).model_validate(content)
        spec = _chat(changed, names[0], profile.workload.concurrencies, SLOT_PROMPTS)
        kept.replace(facts, replay.compare(spec, work, say))


def _drafter(profile: Profile, configuration: str) -> str:
    drafter = profile.configuration(configuration).drafter
    if drafter is None:
        raise UserError(f"{configuration} serves no drafter; name a configuration with a `drafter`.")
    return drafter


def _digest(profile: Profile, configuration: str) -> str:
    return drafter_files.digest(profile, _drafter(profile, configuration))


def _made(out: Path, name: str, facts: dict) -> bool:
    """Is the file there, and was it made from the same text, target and drafter?"""
    noted = {k: v for k, v in published_results.made_from(out).get(name, {}).items() if k != "measured_at"}
    return (out / name).is_file() and noted == facts


def _note(out: Path, name: str, facts: dict, began: str) -> None:
    notes = published_results.made_from(out) | {name: facts | {"measured_at": began}}
    files.write_atomic(out / "made_from.json", json.dumps(notes, indent=1).encode())
