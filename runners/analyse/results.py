"""Reads ledgers back: what was measured, what is void, what is not measured here.

Everything the analysis shows starts from these frames. Nothing is dropped on the way in: a void cell stays a row with
its reasons, and a configuration without a ledger is a row of `statuses` that says why.
"""

import functools
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from runners.analyse import answer_lengths, request_checks
from runners.core import files, paths
from runners.core.errors import UserError
from runners.core.format import NOT_MEASURED
from runners.core.remember import remembered
from runners.measure import campaign_record
from runners.measure.ledger import Ledger, ledger_lines
from runners.profiles.load import argument, is_yaml_path, load, load_if_known
from runners.profiles.profile import Profile

METHOD_ORDER = {"none": 0, "ngram": 1, "eagle3": 2, "draft_model": 3}

# Fixed by the ledger's schema; more fields are welcome and kept.
FIXED = [
    "schema_version", "key", "profile", "configuration", "engine", "engine_version", "method", "k",
    "workload", "concurrency", "context_tokens", "repeat", "forced_accept_length", "status", "reasons",
    "requests", "output_tokens", "seconds", "output_tokens_per_second", "stream_tokens_per_second_p50",
    "ttft_ms_p50", "tpot_ms_p50", "steps", "drafted", "accepted", "accepted_per_position",
    "max_running_requests", "count_source", "started_at",
]  # fmt: skip
EXTRA = [
    "depth", "attempt", "running_peak", "capped_at", "equal_prefix_share", "reference_share",
    "distinct_bigram_ratio", "neighbour_cores", "steal_share", "machine_gflops", "client_cpu_us_per_token",
    "output_tokens_per_request", "warm_up_requests", "simulated", "round",
    "campaign", "start", "block", "order", "load", "rate", "occupancy", "decode_seconds", "decode_tokens",
]  # fmt: skip
REQUEST_COLUMNS = [
    "configuration", "key", "attempt", "prompt_id", "intended_s", "sent_s", "first_token_s",
    "last_token_s", "prompt_tokens", "output_tokens", "finish_reason", "error", "text", "role",
]  # fmt: skip
TEXT = {
    "simulated",
    "key", "profile", "configuration", "engine", "engine_version", "method", "workload", "status",
    "reasons", "accepted_per_position", "count_source", "started_at", "depth", "campaign", "load",
}  # fmt: skip


def method_rank(method: str) -> int:
    """Base first, then n-gram, then EAGLE-3, then anything newer: the order of every table and legend."""
    return METHOD_ORDER.get(method, len(METHOD_ORDER))


def home(runs_root: str | Path, profile: str) -> Path:
    """The folder of a profile's runs, for a profile given by name or as a YAML file."""
    return paths.runs_root(runs_root) / (load(profile).name if is_yaml_path(profile) else profile)


def resolve(rows: list[dict]) -> list[dict]:
    """One row a key: of several attempts the last that is ok, else the last. `attempts`: how many there were."""
    chosen: dict[str, dict] = {}
    attempts: dict[str, int] = {}
    for row in rows:
        key = row["key"]
        attempts[key] = attempts.get(key, 0) + 1
        if key not in chosen or row.get("status") == "ok" or chosen[key].get("status") != "ok":
            chosen[key] = row
    return [row | {"attempts": attempts[key]} for key, row in chosen.items()]


def folders(runs_root: str | Path, profile: str) -> list[Path]:
    """The configuration folders of a profile's runs, by name."""
    base = home(runs_root, profile)
    if not base.is_dir():
        return []
    marks = ("cells.jsonl", "status.json")
    return sorted(f for f in base.iterdir() if f.is_dir() and any((f / m).is_file() for m in marks))


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    for column in frame.columns:
        if column not in TEXT:
            frame[column] = pd.to_numeric(frame[column], errors="coerce")
    for column in ("concurrency", "repeat", "attempts"):
        frame[column] = frame[column].astype("int64")
    return frame


@remembered
def cells(runs_root: str | Path, profile: str, loads: Collection[str] = ("closed",)) -> pd.DataFrame:
    """One row a cell key, void cells included (`status`, `reasons`), sorted; empty with the same columns if none.

    loads: "closed" and "open" loops; a speed under one is no speed under the other, so open ones are asked for by name.
    Columns are the ledger's fields (units in their names: `_s`, `_ms`, `_per_second`) plus `attempts`, `reason` (the
    reasons as one text), `most_starts` (the most starts of the row's campaign; NaN where it is not known) and
    `superseded` (its point was measured with longer answers too: answer_lengths.py). Raises UserError for a line that
    cannot be read or has another schema version.
    """
    rows = []
    for folder in folders(runs_root, profile):
        path = folder / "cells.jsonl"
        if path.is_file():
            rows += resolve([row for row in ledger_lines(path) if row.get("load", "closed") in loads])
    known = [*FIXED, *EXTRA, "attempts"]
    extra = sorted({name for row in rows for name in row} - set(known))
    frame = pd.DataFrame([{c: row.get(c) for c in known + extra} for row in rows], columns=known + extra)
    if frame.empty:
        frame = frame.astype({"concurrency": "int64", "repeat": "int64", "attempts": "int64"})
        none = {"most_starts": float, "reason": object, "superseded": bool}
        return frame.assign(**{column: pd.Series(dtype=dtype) for column, dtype in none.items()})
    # A field this version does not know may hold anything: only the known ones are made numbers.
    frame = pd.concat([_typed(frame[known].copy()), frame[extra]], axis=1)
    frame["most_starts"] = frame["campaign"].map(most_starts(runs_root, profile)).astype(float)
    frame["reason"] = [("; ".join(r) if isinstance(r, list) else "") for r in frame.reasons]
    engines = dict(zip(frame.configuration, frame.engine, strict=True))
    frame["superseded"] = answer_lengths.superseded(frame, {c: base_of(frame, e, c) for c, e in engines.items()})
    return ordered(frame, ["workload", "concurrency", "repeat", "key"])


def most_starts(runs_root: str | Path, profile: str) -> dict[str, int]:
    """campaign -> the most starts that it may make, from the campaign.json of a profile's runs."""
    return {c.id: c.most_starts for c in campaign_record.load(home(runs_root, profile))}


def ordered(frame: pd.DataFrame, then: list[str]) -> pd.DataFrame:
    """Sort by engine, method (base first), configuration, then the given columns: one order everywhere.

    Workload "all", the pool of the others, comes after them.
    """
    ranks = {"_rank": [method_rank(m) for m in frame.method]}
    if "workload" in then:
        ranks["_pool"] = frame.workload == "all"
        then = ["_pool", *then]
    ranked = frame.assign(**ranks).sort_values(["engine", "_rank", "configuration", *then], kind="stable")
    return ranked.drop(columns=list(ranks)).reset_index(drop=True)


def ok(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells that passed every gate, of the longest answers: the only ones that enter an average."""
    good = frame[frame.status == "ok"]
    return good[~good["superseded"].astype(bool)] if "superseded" in good else good


@remembered
def requests(runs_root: str | Path, profile: str, configuration: str | None = None) -> pd.DataFrame:
    """One row a request of the attempt that `cells` chose; seconds from the cell's start.

    Empty with the same columns when there is no requests.parquet; UserError when one cannot be read. Cells whose
    requests are not there are said.
    """
    frames = []
    for folder in folders(runs_root, profile):
        if configuration and folder.name != configuration:
            continue
        ledger = Ledger(folder)
        frame = ledger.requests().reindex(columns=REQUEST_COLUMNS).assign(configuration=folder.name)
        fault = request_checks.impossible(frame)
        if fault:
            raise UserError(f"{folder.name}/{ledger.requests_path.name}: {fault}; measure that configuration again.")
        rows = resolve(ledger.rows())
        chosen = {r["key"]: r.get("attempt") for r in rows}
        # Rows without an attempt number come from a ledger that repeats nothing: keep them all.
        wanted = [
            k in chosen and (chosen[k] is None or pd.isna(a) or a == chosen[k])
            for k, a in zip(frame.key, frame.attempt, strict=True)
        ]
        frames.append(frame[wanted])
        request_checks.say_lost(ledger.requests_path, rows, set(frame.key))
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame(columns=REQUEST_COLUMNS)
    return pd.concat(frames, ignore_index=True)


def planned(profile: str) -> pd.DataFrame:
    """configuration, engine, method that the profile names; empty if there is no such profile here."""
    plan = load_if_known(profile)
    rows = [
        {"configuration": name, "engine": c.engine, "method": plan.method_of(name)}
        for name, c in (plan.configurations.items() if plan else ())
    ]
    return pd.DataFrame(rows, columns=["configuration", "engine", "method"])


def points(profile: str, measured: pd.DataFrame) -> list[tuple[str, int]]:
    """(workload, concurrency) of the profile and of what was measured; workload "all" is the pool of them."""
    plan = load_if_known(profile)
    workloads = dict.fromkeys([*(plan.workload.prompt_sets if plan else ()), *sorted(set(measured.workload))])
    concurrencies = sorted({*(plan.workload.concurrencies if plan else ()), *map(int, measured.concurrency)})
    return [(w, c) for w in [*workloads, "all"] for c in concurrencies]


def statuses(runs_root: str | Path, profile: str) -> pd.DataFrame:
    """One row a configuration of the profile or with a folder here.

    Columns: configuration, engine, method, status (measured | partly measured | not measured here), reason, `ok cells`
    and `void cells` (counts).
    """
    measured = cells(runs_root, profile)
    by_name = {f.name: f for f in folders(runs_root, profile)}
    plan = planned(profile).set_index("configuration")
    rows = []
    for name in dict.fromkeys([*plan.index, *by_name]):
        own = measured[measured.configuration == name]
        first = own.iloc[0] if len(own) else (plan.loc[name] if name in plan.index else {})
        status, reason = _status(by_name.get(name), len(own) > 0)
        rows.append(
            {
                "configuration": name,
                "engine": first.get("engine") if len(first) else None,
                "method": first.get("method", "none") if len(first) else "none",
                "status": status,
                "reason": reason or "",
                "ok cells": int((own.status == "ok").sum()),
                "void cells": int((own.status != "ok").sum()),
            }
        )
    columns = ["configuration", "engine", "method", "status", "reason", "ok cells", "void cells"]
    frame = pd.DataFrame(rows, columns=columns)
    return ordered(frame.assign(engine=frame.engine.fillna("")), ["configuration"]) if len(frame) else frame


def _status(folder: Path | None, has_cells: bool) -> tuple[str, str | None]:
    """(status, reason) of a configuration: its status.json where there is one, else whether it has cells."""
    status, reason = ("measured", None) if has_cells else (NOT_MEASURED, "no run of this profile on this machine yet")
    path = folder / "status.json" if folder else None
    if path is None or not path.is_file():
        return status, reason
    noted = files.read_json(path, dict, "delete it and run the report again")
    return noted.get("status", status), noted.get("reason")


def eager(runs_root: str | Path, profile: str) -> set[str]:
    """Configurations that started without capturing graphs although their base captured some.

    By the load phases of their last start; a configuration without a recorded start is not among them.
    """
    plan = load_if_known(profile)
    captured = {}
    for folder in folders(runs_root, profile):
        starts = Ledger(folder).starts()
        if starts:
            captured[folder.name] = any("graph" in phase["name"] for phase in starts[-1]["phases"])
    names = plan.configurations if plan else {}
    return {n for n in captured if n in names and not captured[n] and captured.get(plan.base_of(n) or n)}


def base_of(frame: pd.DataFrame, engine: str, configuration: str | None = None) -> str | None:
    """What that engine's configurations (or this one) are compared with: one that does not draft.

    The profile's choice (`base:`) where the profile is here and the choice is in the frame; else the first by name.
    """
    names = sorted(frame[(frame.engine == engine) & (frame.method == "none")].configuration.unique())
    plan = profile_of(frame) if names else None
    if plan is not None:
        marked = [n for n in plan.plain(engine) if plan.configurations[n].base is True]
        chosen = plan.base_of(configuration) if configuration in plan.configurations else next(iter(marked), None)
        if chosen in names:
            return chosen
    return names[0] if names else None


def profile_of(frame: pd.DataFrame) -> Profile | None:
    """The profile that measured these cells, where it is here."""
    return _profile(argument(str(frame["profile"].iloc[0]))) if "profile" in frame and len(frame) else None


@functools.lru_cache(maxsize=8)
def _profile(name: str) -> Profile | None:
    """Read once: a table of step costs asks for the base of each of its rows."""
    return load_if_known(name)
