"""`python -m runners diagnose`: why does this drafter fail? Files, measured acceptance, and what-if replays.

Three kinds of evidence are put together: what the files say (drafter_checks.py), what the ledger measured, and how
the replayed accept length changes when one thing is taken back (scripts/what_if.py). The causes are ranked by the
accept length that undoing them gains; files and measurements alone only point.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from runners import acceptance, corpus, drafter_checks, environments, model, replays, tables, training
from runners.drafter_checks import Finding
from runners.errors import UserError
from runners.hypotheses import CAUSES
from runners.paths import ROOT
from runners.profile import Profile

Progress = Callable[[str], None]
SEQUENCES = 24
GAIN = 0.01  # of accept length: less than this is not worth a cause
SURE = 2.5  # standard errors, over the answers: many alternatives are tried
NEXT = {
    "random-head": "serve with an lm_head: export the drafter again, or copy the target's rows of the draft vocabulary",
    "wrong-map": "rebuild d2t from the drafter's training vocabulary and serve again",
    "boundary+1": "lower each layer id by one (or serve with a release that adds none) and serve again",
    "boundary-1": "raise each layer id by one and serve again",
    "aux-order": "turn the input blocks of fc.weight to the ascending order of layers that engines capture in",
    "rope-base": "set rope_theta to the target's and serve again",
    "norm-flag": "flip norm_before_residual in the config and serve again",
    "int4": "serve the drafter in the dtype it was trained in",
    "bfloat16": "compare with the checkpoint it was rounded from; the loss is usually small",
    "short-context": "compare short with long prompts, alone and together: vLLM accepts nothing of a whole batch with "
    "one request beyond the limit",
    "weak": "compare with its held-out figures; more data, or a drafter made for this target",
    "engine": "serve at C=1 and at C=16: if only one is low, the engine mixes its slots",
}


@dataclass
class Cause:
    """One likely cause; `gain` is the accept length that undoing it adds in replay (None: not replayed)."""

    name: str
    gain: float | None = None
    evidence: list[str] = field(default_factory=list)


@dataclass
class Diagnosis:
    findings: list[Finding]
    measured: dict | None
    what_if: dict[str, dict]
    causes: list[Cause]


def diagnose(profile: Profile, configuration: str, runs: Path, say: Progress = print) -> Diagnosis:
    """UserError when the configuration has no drafter or its folder cannot be read."""
    chosen = profile.configuration(configuration)
    if chosen.method != "eagle3" or chosen.drafter is None:
        raise UserError(f"{configuration} has no drafter to diagnose; name a configuration with `method: eagle3`.")
    files = model.files(profile, chosen.drafter, say)
    if files.drafter_folder is None or files.folder is None:
        raise UserError(f"{configuration}: diagnosis reads Hugging Face folders, and this drafter or target has none.")
    drafter = drafter_checks.read(files.drafter_folder)
    target = json.loads((files.folder / "config.json").read_text())
    findings = drafter_checks.check(drafter, target, profile.target.context_length)
    measured = _measured(profile, configuration, runs)
    alternatives = _what_if(profile, files.drafter_folder, chosen.k or 3, say)
    return Diagnosis(findings, measured, alternatives, rank(findings, measured, alternatives))


def _measured(profile: Profile, configuration: str, runs: Path) -> dict | None:
    """Pooled counts of the ledger's good cells; None when there are none."""
    cells = tables.ok(tables.cells(runs, profile.name))
    pool = acceptance.pooled(cells[cells["configuration"] == configuration])
    if pool.empty:
        return None
    steps, accepted = int(pool["steps"].fillna(0).sum()), int(pool["accepted"].fillna(0).sum())
    if not steps:
        return None
    per_position = acceptance.add_positions(list(pool["accepted_per_position"])) or []
    return {"steps": steps, "accepted": accepted, "survival": [p / steps for p in per_position] if steps else []}


def _what_if(profile: Profile, drafter: Path, k: int, say: Progress) -> dict[str, dict]:
    """Replays on held-out answers; empty where this machine has no text or no reference model to capture them."""
    source = corpus.FOLDER / "answers.parquet"
    if not source.is_file() or profile.training is None or not environments.ready("reference"):
        return {}
    layers = profile.target.layers
    ids = replays.boundaries_of(drafter, layers)
    work = ROOT / "local" / "drafter" / profile.name / "diagnose"
    sequences = work / "held-out.safetensors"
    training.pack_held_out(sequences, SEQUENCES)
    held = sorted({i + s for i in [*ids, *profile.training.boundaries] for s in (-1, 0, 1) if 0 <= i + s < layers})
    states = replays.capture(profile, "reference", sequences, held, say)
    asked = {
        "target": str(model.files(profile, None, say).folder),
        "drafter": str(drafter),
        "sequences": str(sequences),
        "states": str(states),
        "k": k,
        "output_tokens": 10_000,
        "layer_ids": ids,
        "held": held,
    }
    return training.ask_script("what_if", asked)


def rank(findings: list[Finding], measured: dict | None, alternatives: dict[str, dict]) -> list[Cause]:
    """Likely causes, the most likely first: by replayed gain, then by what the files and the counts point to."""
    causes: dict[str, Cause] = {}

    def cause(name: str) -> Cause:
        return causes.setdefault(name, Cause(name))

    unchanged = alternatives.get("as it is", {})
    as_it_is = unchanged.get("accept_length")
    for words, row in alternatives.items():
        gain, sure = paired_gain(row["every_position"], unchanged["every_position"])
        if row["cause"] and sure and gain > GAIN:
            one = cause(row["cause"])
            one.gain = max(gain, one.gain or 0)
            one.evidence.append(
                f"replay: with {words} the accept length from every position is "
                f"{np.nanmean(row['every_position']):.3f}, not {np.nanmean(unchanged['every_position']):.3f}"
            )
    for finding in findings:
        if finding.cause and finding.level != "note":
            cause(finding.cause).evidence.append(f"files ({finding.level}): {finding.text}")
    if measured and measured["steps"]:
        length = acceptance.accept_length(measured["steps"], measured["accepted"])
        if acceptance.reads_one(measured["steps"], measured["accepted"]):
            words = f"measured: {measured['accepted'] or 'nothing'} accepted over {measured['steps']:,} steps"
            for name in ("random-head", "wrong-map"):
                cause(name).evidence.append(words)
        elif as_it_is and length < 0.8 * as_it_is:
            cause("engine").evidence.append(f"measured {length:.2f} where replay gives {as_it_is:.2f}")
    if not any(c.gain for c in causes.values()) and as_it_is and as_it_is > 1.02:
        cause("weak").evidence.append(f"replay: {as_it_is:.2f} as it is, and no alternative is better")
    return sorted(causes.values(), key=lambda c: (-(c.gain or 0), -len(c.evidence)))


def paired_gain(changed: list[float], unchanged: list[float]) -> tuple[float, bool]:
    """(mean gain over the answers, is it clear of chance); the same answers on both sides, so they are paired."""
    apart = np.asarray(changed, dtype=float) - np.asarray(unchanged, dtype=float)
    apart = apart[np.isfinite(apart)]  # an answer of no more than K tokens has no whole chain
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.inf
    if not len(apart):
        return 0.0, False
    return float(apart.mean()), bool(apart.mean() > SURE * error)


def show(profile: Profile, configuration: str, runs: Path) -> int:
    found = diagnose(profile, configuration, runs, say=lambda _: None)
    print(f"{configuration}: drafter {profile.configuration(configuration).drafter}\n\nFiles")
    for f in found.findings:
        print(f"  {f.level:8} {f.text}" + (f"\n           fix: {f.fix}" if f.fix else ""))
    if not found.findings:
        print("  nothing to remark")
    print("\nMeasured")
    if found.measured:
        m = found.measured
        survival = ", ".join(f"{s:.3f}" for s in m["survival"])
        print(f"  accept length {1 + m['accepted'] / m['steps']:.3f} over {m['steps']:,} steps; survival {survival}")
    else:
        print("  not measured here")
    print("\nReplayed on held-out answers")
    for words, row in found.what_if.items():
        print(f"  {row['accept_length']:.3f}  {words}")
    if not found.what_if:
        print("  not here: it needs captured text and the reference environment")
    print("\nLikely causes, most likely first")
    for number, one in enumerate(found.causes, start=1):
        gain = f" (undoing it gains {one.gain:.2f})" if one.gain else ""
        print(f"  {number}. {CAUSES.get(one.name, one.name)}{gain}")
        for line in one.evidence:
            print(f"     - {line}")
        print(f"     next: {NEXT.get(one.name, 'replay and serve it again')}")
    if not found.causes:
        print("  none found")
    return 0
