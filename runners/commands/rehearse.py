"""`specverdict rehearse --profile NAME`: the whole report of a profile against stand-in engines.

It tries everything but the engines before a long load is spent: each configuration's command line, load phases, cap,
counters, cells, gates, notebooks and the book. Engines are runners/standins/engine.py at the pace of the reported
table; loads take seconds and answers are short. Everything is marked simulated and written to build/rehearsal/, and
`publish`, `readme` and the claims refuse it.
"""

import argparse
import json
import sys
from pathlib import Path

import yaml

from runners.analyse import reported
from runners.commands import arguments, run_report
from runners.core import files, paths, secrets
from runners.core.errors import UserError
from runners.core.paths import SCRIPTS
from runners.engines.engine import StandIn
from runners.engines.registry import all_engines
from runners.profiles.load import load
from runners.profiles.profile import Profile

STANDIN = SCRIPTS.parent / "standins" / "engine.py"
FOLDER = paths.BUILD / "rehearsal"
OUTPUT_TOKENS = 64
LOAD_SECONDS = 2.0
STEP_COST = 1.6  # step-cost ratio, where the reported table has no such row
LENGTH = 2.5  # accept length, where the reported table has no such drafter
FULL = 128  # concurrency of the reported table's second column
FAULTS = ("die", "stall", "lie")


def rehearse(profile: Profile, faults: bool = False) -> int:
    """Measure, analyse and build against stand-ins; returns the report's exit code."""
    place = write(profile, faults)
    print(f"rehearsal of {profile.name}: stand-in engines, compressed time, nothing measured ({place})")
    return run_report.report(run_report.ReportRun(load(str(place)), str(place), "quick", str(FOLDER / "runs")))


def write(profile: Profile, faults: bool = False) -> Path:
    """build/rehearsal/<name>-rehearsal.yaml: the same configurations with stand-ins for engines and small files."""
    stand_ins = {kind: e.stand_in for kind, e in all_engines().items() if e.stand_in}
    other = sorted({c.engine for c in profile.configurations.values()} - set(stand_ins))
    if other:
        raise UserError(
            f"Profile {profile.name} serves {other[0]}, which has no stand-in; use {' or '.join(stand_ins)}."
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    content = profile.model_dump(mode="json")
    content |= {"name": f"{profile.name}-rehearsal", "title": f"SIMULATED: {profile.title}", "simulated": True}
    content["target"] |= {"path": str(_folder("target")), "package": None, "package_sha256": None}
    content["target"] |= {"file_in_package": None, "file_sha256": None, "dequantised": False}
    content["drafters"] = {
        name: {"path": str(_folder(f"drafter-{name}")), "note": d.note} for name, d in profile.drafters.items()
    }
    for kind, spec in content["engines"].items():
        # An engine that no configuration uses needs no stand-in, and is not started.
        stand_in = stand_ins.get(kind, StandIn(kind))
        argv = [sys.executable, str(STANDIN), stand_in.kind]
        spec |= {"environment": None, "python": None, "command": argv, "port": None}
        spec["flags"] |= stand_in.flags
    for name, chosen in content["configurations"].items():
        chosen["attach"] = chosen["command"] = None  # a rehearsal asks nothing of a real server
        chosen["env"] |= {"REHEARSAL_SPEEDS": json.dumps(speeds(name, chosen["engine"], profile.method_of(name)))}
    if faults:
        _add_faults(content, profile)
    levels = content["workload"]["concurrencies"]
    preset = {"rounds": 1, "repeats": dict.fromkeys(levels, 1), "requests": {c: max(c // 4, 2) for c in levels}}
    content["workload"] |= {"output_tokens": OUTPUT_TOKENS, "presets": {"quick": preset}, "default_preset": "quick"}
    content["gates"] |= {"equal_to_reference_floor": None, "check_neighbours": False}
    content |= {"stall_seconds": 20, "request_timeout_seconds": 20, "training": None}
    content["timing"] = {"start_seconds": dict.fromkeys(content["engines"], 4.0), "stream_tokens_per_second": {}}
    place = FOLDER / f"{content['name']}.yaml"
    files.write_text(place, yaml.safe_dump(secrets.hidden(content), sort_keys=False, allow_unicode=True))
    return place


def _folder(name: str) -> Path:
    """A small folder in place of the real weights."""
    place = FOLDER / "files" / name
    place.mkdir(parents=True, exist_ok=True)
    files.write_text(place / "config.json", '{"model_type": "stand-in"}\n')
    return place


def speeds(name: str, engine: str, method: str) -> dict[str, float]:
    """The pace of a configuration: the reported table's where it has the row, else estimated from its engine's base.

    Seconds of a step at one and at `full` running requests, tokens of a verification step, seconds of a load.
    """
    case = reported.case().set_index("configuration")
    base = reported.base_row(case.reset_index(), engine)
    one, full = (base.single_stream_tok_s, base.c128_tok_s) if base is not None else (60.0, 2000.0)
    found = {
        "step_s_1": 1 / one,
        "step_s_full": FULL / full,
        "full": FULL,
        "accept_length": 1.0,
        "load_s": LOAD_SECONDS,
    }
    if method == "none":
        return found
    if name in case.index and case.loc[name].accept_length == case.loc[name].accept_length:
        row = case.loc[name]
        length = float(row.accept_length)
        # Its cap let 48 of the 128 requests run: the reported throughput is that of 48.
        capped = {"step_s_1": length / row.single_stream_tok_s, "step_s_full": 48 * length / row.c128_tok_s, "full": 48}
        return found | capped | {"accept_length": length}
    dearer = {key: found[key] * STEP_COST for key in ("step_s_1", "step_s_full")}
    return found | dearer | {"accept_length": LENGTH}


def _add_faults(content: dict, profile: Profile) -> None:
    """A further configuration for each fault: a stand-in that dies, stalls, or repeats one word."""
    name = next((n for n in profile.configurations if not profile.drafts(n)), None)
    if name is None:
        raise UserError(f"Profile {profile.name} has no configuration that does not draft: --faults needs one.")
    chosen = content["configurations"][name]
    # The copies do not draft either: which one is the base must now be said.
    content["configurations"][profile.base_of(name)]["base"] = True
    for fault in FAULTS:
        content["configurations"][f"{name}-{fault}"] = chosen | {
            "base": None,
            "title": f"stand-in that will {fault}",
            "flags": chosen["flags"] | {"fault": fault},
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    parser.add_argument("--faults", action="store_true", help="stand-ins that also die, stall and lie")


def main(args: argparse.Namespace) -> int:
    return rehearse(load(args.profile), args.faults)
