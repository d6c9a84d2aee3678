"""What the chapters Drafter and Alignment show, read from files; tables are empty where nothing was measured.

`since`: only what was measured after this time; rows that do not say when (before 2026-12) are left out then.
"""

import datetime
import json
from pathlib import Path

import pandas as pd

from runners.analyse import results, step_cost
from runners.core import acceptance_math, files
from runners.core.paths import DATA
from runners.drafter import corpus, fault_injection
from runners.drafter import faults as fault_names
from runners.profiles import load

AIM_LENGTH, AIM_SPEED_UP = 2.3, 1.3  # set before training: accept length on chat, and decode speed-up at C=1
DRAFTER = DATA / "drafters" / "aligned"
REPLAY = ["configuration", "workload", "concurrency", "steps", "served", "replayed", "difference"]
SLOTS = ["draft_sampling", "concurrency", "steps", "accepted", "served", "replayed"]
FAULTS = ["configuration", "fault", "what", "steps", "accepted", "accept_length_served", "accept_length_replayed"]
FAULTS += ["survival", "reads_one"]
Date = datetime.datetime | None


def folder(runs: str | Path, profile: str) -> Path:
    """Where `specverdict align` writes."""
    return results.home(runs, profile) / "alignment"


def training(drafter: Path = DRAFTER) -> dict:
    """{"facts": .., "history": [..]} of the published drafter; empty when there is none."""
    file = drafter / "history.json"
    return json.loads(file.read_text()) if file.is_file() else {"facts": {}, "history": []}


def text() -> pd.DataFrame:
    """The corpus by kind and part: answers and answer tokens."""
    file = corpus.FOLDER / "answers.parquet"
    if not file.is_file():
        return pd.DataFrame(columns=["kind", "part", "answers", "answer tokens"])
    frame = pd.read_parquet(file, columns=["kind", "part", "answer_tokens"])
    frame["answer tokens"] = frame.pop("answer_tokens").map(len)
    grouped = frame.groupby(["kind", "part"])["answer tokens"].agg(["count", "sum"]).reset_index()
    return grouped.rename(columns={"count": "answers", "sum": "answer tokens"})


def scaling() -> pd.DataFrame:
    """The same training on more and more text: train_tokens, steps, seconds, accept_length and top-1 by draft step."""
    file = DRAFTER.parent / "scaling.csv"
    columns = ["train_tokens", "steps", "seconds", "accept_length"]
    return pd.read_csv(file) if file.is_file() else pd.DataFrame(columns=columns)


def aim(runs: str | Path, profile: str) -> pd.DataFrame:
    """How near the aligned drafter comes to its aim at C=1: one row a configuration and workload.

    needs_length: the accept length that gives the speed-up aimed at, at the measured step cost. needs_cost: the step
    cost that gives it at the measured accept length. short: the term that falls short (_short).
    """
    columns = ["configuration", "workload", "accept_length", "step_cost", "speed_up", "needs_length", "needs_cost"]
    found = load.load_if_known(profile)
    own = [
        n
        for n, c in (found.configurations.items() if found else ())
        if c.drafter == "aligned" and c.forced_accept_length is None
    ]
    measured = results.cells(runs, profile)
    costs = step_cost.step_costs(measured, results.requests(runs, profile)) if len(measured) else pd.DataFrame()
    rows = []
    for r in costs.itertuples():
        if r.configuration in own and r.concurrency == 1 and r.workload != "all" and pd.notna(r.step_cost):
            length, cost = r.tokens_per_step, r.step_cost
            needs = [AIM_SPEED_UP * cost, length / AIM_SPEED_UP]
            rows.append([r.configuration, r.workload, length, cost, r.decode_speed_up, *needs])
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(short=[_short(r) for r in frame.itertuples()])


def _short(row) -> str:
    """The term that keeps a row from the aim: "nothing", "step cost", "accept length" or "both"."""
    if row.speed_up >= AIM_SPEED_UP:
        return "nothing"
    # A step may cost as much as the accept length aimed at would pay for.
    dear = row.step_cost > AIM_LENGTH / AIM_SPEED_UP
    weak = row.accept_length < AIM_LENGTH
    return "both" if dear and weak else "step cost" if dear else "accept length"


def _lines(file: Path, since: Date = None) -> list[dict]:
    """The rows of a file; with `since` those that say that they were measured after it."""
    rows = [row for _, row in files.json_lines(file)] if file.is_file() else []
    return [row for row in rows if since is None or _is_later(row, since)]


def _is_later(facts: dict, since: datetime.datetime) -> bool:
    return "measured_at" in facts and datetime.datetime.fromisoformat(facts["measured_at"]) > since


def last_measured(runs: str | Path, profile: str) -> dict[str, datetime.datetime]:
    """File name -> when its last row was measured; without the files that do not say it (before 2026-12)."""
    out = folder(runs, profile)
    by_file = {name: _lines(out / name) for name in ("replay.jsonl", "llamacpp_slots.jsonl", fault_injection.FILE)}
    by_file |= {name: [facts] for name, facts in made_from(out).items()}
    dates = {name: [r["measured_at"] for r in rows if "measured_at" in r] for name, rows in by_file.items()}
    return {name: max(map(datetime.datetime.fromisoformat, known)) for name, known in dates.items() if known}


def made_from(out: Path) -> dict[str, dict]:
    """made_from.json of an alignment folder: file -> what it was made from, and when."""
    file = out / "made_from.json"
    return files.read_json(file, dict, "delete it: what it names is then measured again") if file.is_file() else {}


def replay(runs: str | Path, profile: str, since: Date = None) -> pd.DataFrame:
    """Served and replayed accept lengths: one row a configuration, workload and concurrency, columns REPLAY.

    difference: served / replayed - 1.
    """
    rows = [
        {
            "configuration": r["configuration"],
            "workload": r["workload"],
            "concurrency": r["concurrency"],
            "steps": r["served"]["steps"],
            "served": r["served"]["accept_length"],
            "replayed": r["replayed"]["accept_length"],
            "difference": r["served"]["accept_length"] / r["replayed"]["accept_length"] - 1,
        }
        for r in _lines(folder(runs, profile) / "replay.jsonl", since)
    ]
    return pd.DataFrame(rows, columns=REPLAY)


def llamacpp_slots(runs: str | Path, profile: str, since: Date = None) -> pd.DataFrame:
    """Accept lengths by where llama.cpp samples draft tokens and by concurrency: columns SLOTS."""
    rows = [
        {
            "draft_sampling": r["draft_sampling"],
            "concurrency": r["concurrency"],
            "steps": r["served"]["steps"],
            "accepted": r["served"]["accepted"],
            "served": r["served"]["accept_length"],
            "replayed": r["replayed"]["accept_length"],
        }
        for r in _lines(folder(runs, profile) / "llamacpp_slots.jsonl", since)
    ]
    return pd.DataFrame(rows, columns=SLOTS)


def fault_table(rows: list[dict]) -> pd.DataFrame:
    """One row a configuration and fault, with columns FAULTS, in the order of the table of faults.

    survival: share of steps that kept position 1, 2, ... when served. reads_one: whether the served accept length is
    1.00 to two decimals, as the case's drafter read in its log.
    """
    kept, order = [], list(fault_names.FAULTS)
    # An engine's rows stay together; a fault of an older version comes last.
    for row in sorted(rows, key=lambda r: (r["configuration"], (*order, r["fault"]).index(r["fault"]))):
        served, replayed = row["served"], row["replayed"]
        survival = [round(a / served["steps"], 4) for a in served["accepted_per_position"]] if served["steps"] else []
        kept.append(
            {
                "configuration": row["configuration"],
                "fault": row["fault"],
                "what": fault_names.what(row["fault"]),
                "steps": served["steps"],
                "accepted": served["accepted"],
                "accept_length_served": served["accept_length"],
                "accept_length_replayed": replayed["accept_length"],
                "survival": survival,
                "reads_one": acceptance_math.reads_one(served["steps"], served["accepted"]),
            }
        )
    return pd.DataFrame(kept, columns=FAULTS)


def faults(runs: str | Path, profile: str, since: Date = None) -> pd.DataFrame:
    """`fault_table` of the published rows."""
    return fault_table(_lines(folder(runs, profile) / fault_injection.FILE, since))


def csv(runs: str | Path, profile: str, name: str, columns: list[str], since: Date = None) -> pd.DataFrame:
    """One of the CSV files; an empty frame with these columns when it was not measured (after `since`)."""
    out = folder(runs, profile)
    # slots.csv is made together with drift.csv, which is the one that is noted.
    facts = made_from(out).get("drift.csv" if name == "slots.csv" else name, {}) if since else {}
    there = (out / name).is_file() and (since is None or _is_later(facts, since))
    return pd.read_csv(out / name) if there else pd.DataFrame(columns=columns)
