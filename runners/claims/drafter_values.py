"""Named values of what `specverdict align` measured: states, replay, faults and target drift."""

import datetime
from pathlib import Path

import pandas as pd

from runners.claims.value_names import word
from runners.drafter import fault_injection, hidden_states, published_results, target_drift
from runners.engines.registry import all_engines

Date = datetime.datetime | None
# The second part of a name -> the file that says when its values were measured.
FAMILIES = {
    "replay": "replay.jsonl",
    "slots": "llamacpp_slots.jsonl",
    "fault": fault_injection.FILE,
    "drift": "drift.csv",
    "offset": "drift.csv",
    "target_drift": target_drift.FILE,
}


def of_alignment(runs: str | Path, profile: str, since: Date = None) -> dict[str, float]:
    """All of this module's values; empty where nothing was measured.

    since: only what was measured after this time; rows that do not say when (before 2026-12) are left out then.
    """
    families = (of_replay, of_llamacpp_slots, of_states, of_faults, of_target_drift)
    return {name: value for family in families for name, value in family(str(runs), profile, since).items()}


def dates(runs: str | Path, profile: str) -> dict[str, datetime.datetime]:
    """run.<family> -> when the last of its values was measured, where the files say it."""
    by_file = published_results.last_measured(runs, profile)
    return {f"run.{family}": by_file[name] for family, name in FAMILIES.items() if name in by_file}


def of_replay(runs: str, profile: str, since: Date = None) -> dict[str, float]:
    """run.replay.worst: how far served and replayed accept lengths are apart at most, relative."""
    rows = published_results.replay(runs, profile, since)
    return {"run.replay.worst": float(rows["difference"].abs().max())} if len(rows) else {}


def of_llamacpp_slots(runs: str, profile: str, since: Date = None) -> dict[str, float]:
    """run.slots.<host|graph>.c<C>: served accept length by where llama.cpp samples draft tokens."""
    rows = published_results.llamacpp_slots(runs, profile, since)
    return {f"run.slots.{word(r.draft_sampling)}.c{r.concurrency}": float(r.served) for r in rows.itertuples()}


def of_states(runs: str, profile: str, since: Date = None) -> dict[str, float]:
    """run.drift.* and run.offset.worst: the engines' hidden states against the reference's."""
    found: dict[str, float] = {}
    drift = published_results.csv(runs, profile, "drift.csv", ["source", "boundary", "drift", "to_next"], since)
    if len(drift):
        rounding = [e.name for e in all_engines().values() if e.rounds_activations]
        found["run.drift.int4"] = float(drift.loc[drift["source"].isin(rounding), "drift"].median())
        found["run.drift.next_layer"] = float(drift["to_next"].median())
    slots = published_results.csv(runs, profile, "slots.csv", ["slot", "boundary", "distance", "source"], since)
    if len(slots):
        found["run.offset.worst"] = float(hidden_states.offsets_by_source(slots)["offset"].abs().max())
    return found


def of_faults(runs: str, profile: str, since: Date = None) -> dict[str, float]:
    """run.fault.<configuration>.<fault>.served | replayed (accept lengths) | accepted (tokens)."""
    found: dict[str, float] = {}
    for r in published_results.faults(runs, profile, since).itertuples():
        at = f"run.fault.{word(r.configuration)}.{word(r.fault)}"
        values = {"served": r.accept_length_served, "replayed": r.accept_length_replayed, "accepted": r.accepted}
        found |= {f"{at}.{name}": float(value) for name, value in values.items() if pd.notna(value)}
    return found


def of_target_drift(runs: str, profile: str, since: Date = None) -> dict[str, float]:
    """run.target_drift.noise_<noise>.*: a drafter on targets that moved away from its own."""
    found: dict[str, float] = {}
    rows = published_results.csv(runs, profile, target_drift.FILE, target_drift.COLUMNS, since)
    for r in rows.to_dict("records"):
        at = f"run.target_drift.noise_{word(r['noise'])}"
        found |= {f"{at}.{name}": float(r[name]) for name in ("drift", "agreement", "repeated", "accept_length")}
        found[f"{at}.same_text"] = float(r["same_text_accept_length"])
    return found
