"""`specverdict diagnose`: why does this drafter fail? Files, measured acceptance, and what-if replays.

There are three kinds of evidence: what the files say (compatibility.py), what an engine measured (measured.py), and how
the replayed accept length changes when one thing is undone (scripts/what_if.py). Faults are ranked by the accept length
that undoing them gains; files and measurements alone are only hints. A drafter outside a profile: diagnose_folders.py.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from runners.analyse import acceptance, results
from runners.core import checkpoint
from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.core.paths import ROOT
from runners.core.progress import Progress
from runners.drafter import compatibility, corpus, layouts, measured, ngram_overlap, packed_sequences, replay
from runners.drafter.measured import Measured
from runners.engines import environments
from runners.profiles import methods
from runners.profiles.profile import Profile
from runners.serve import model_files, scripts

SEQUENCES = 24
GAIN = 0.01  # of accept length: a smaller gain names no fault
SURE = 2.5  # standard errors over the answers; more than the usual 2, because many alternatives are tried
NO_REPLAY = "this needs data/corpus/answers.parquet and the reference environment"


@dataclass
class LikelyFault:
    """One likely fault; `gain` is the accept length that undoing it adds in replay (None: not replayed)."""

    name: str
    gain: float | None = None
    evidence: list[str] = field(default_factory=list)


@dataclass
class Diagnosis:
    """What was found. `told`: what logs and /metrics texts say is wrong. `what_if`: scripts/what_if.py's result;
    `not_replayed`: why there is none. `likely`: the faults that this evidence names, the most likely first.
    """

    findings: list[Finding]
    measured: list[Measured]
    what_if: dict[str, dict]
    likely: list[LikelyFault]
    not_replayed: str = NO_REPLAY
    told: list[Finding] = field(default_factory=list)


def diagnose(profile: Profile, configuration: str, runs: Path, say: Progress = print) -> Diagnosis:
    """Look at how a configuration drafts; UserError when it drafts by nothing or its drafter cannot be read."""
    chosen = profile.configuration(configuration)
    method = profile.method_of(configuration)
    found = _measured(profile, configuration, runs, methods.method(method))
    if methods.method(method).drafter == "none" and method != "none":
        findings = list(ngram_overlap.check(runs / profile.name / configuration))
        return Diagnosis(findings, found, {}, [], "there is nothing to replay: what is drafted stands in the text")
    if chosen.drafter is None and method != "mtp":
        raise UserError(f"{configuration} has no drafter to diagnose; name a configuration with a `drafter`.")
    files = model_files.files(profile, chosen.drafter, say)
    own = files.drafter_folder if chosen.drafter else files.folder
    if own is None or files.folder is None:
        raise UserError(f"{configuration}: diagnosis needs the drafter and the target as Hugging Face folders.")
    length = profile.target.context_length
    if method.removesuffix(methods.TREE) != "eagle3":
        findings = _of_another_method(own, files.folder, length)
        return Diagnosis(findings, found, {}, rank(findings, found, {}), "replay follows EAGLE-3 heads only")
    findings = compatibility.check(checkpoint.read(own), checkpoint.read_config(files.folder), length)
    alternatives = _what_if(profile, own, chosen.k or 3, say)
    return Diagnosis(findings, found, alternatives, rank(findings, found, alternatives))


def _of_another_method(drafter: Path, target: Path, length: int) -> list[Finding]:
    whole = checkpoint.read(target)
    head = layouts.mtp_of(whole) if drafter == target else layouts.of(checkpoint.read(drafter))
    return compatibility.check_layout(head, compatibility.sizes_of(whole.config), length, whole)


def _measured(profile: Profile, configuration: str, runs: Path, method: methods.Method) -> list[Measured]:
    """Pooled counts of the ledger's good cells; empty when there are none."""
    cells = results.ok(results.cells(runs, profile.name))
    pool = acceptance.pooled(cells[cells["configuration"] == configuration])
    if pool.empty:
        return []
    steps, accepted = int(pool["steps"].fillna(0).sum()), int(pool["accepted"].fillna(0).sum())
    if not steps:
        return []
    per_position = acceptance.add_positions(list(pool["accepted_per_position"])) or []
    source = "ledger; steps without a draft are not among them" if method.every_step is False else "ledger"
    return [measured.of_counts(steps, accepted, per_position, source)]


def _what_if(profile: Profile, drafter: Path, k: int, say: Progress) -> dict[str, dict]:
    """Replays on held-out answers; empty where this machine has no text or no reference model to capture them."""
    source = corpus.FOLDER / "answers.parquet"
    if not source.is_file() or profile.training is None or not environments.ready("reference"):
        return {}
    layers = profile.target.layers
    ids = checkpoint.boundaries_of(drafter, layers)
    work = ROOT / "local" / "drafter" / profile.name / "diagnose"
    sequences = work / "held-out.safetensors"
    packed_sequences.pack_held_out(sequences, SEQUENCES)
    held = sorted({i + s for i in [*ids, *profile.training.boundaries] for s in (-1, 0, 1) if 0 <= i + s < layers})
    states = replay.capture(profile, "reference", sequences, held, say)
    request = {
        "target": str(model_files.files(profile, None, say).folder),
        "drafter": str(drafter),
        "sequences": str(sequences),
        "states": str(states),
        "k": k,
        "output_tokens": 10_000,
        "layer_ids": ids,
        "held": held,
    }
    return scripts.ask_script("what_if", request)


def rank(findings: list[Finding], found: list[Measured], alternatives: dict[str, dict]) -> list[LikelyFault]:
    """Likely faults, the most likely first: by replayed gain, then by how much evidence names them."""
    likely: dict[str, LikelyFault] = {}

    def fault(name: str) -> LikelyFault:
        return likely.setdefault(name, LikelyFault(name))

    unchanged = alternatives.get("as it is", {})
    as_it_is = unchanged.get("accept_length")
    for words, row in alternatives.items():
        gain, sure = paired_gain(row["every_position"], unchanged["every_position"])
        if row["fault"] and sure and gain > GAIN:
            one = fault(row["fault"])
            one.gain = max(gain, one.gain or 0)
            one.evidence.append(
                f"replay: with {words} the accept length from every position is "
                f"{np.nanmean(row['every_position']):.3f}, not {np.nanmean(unchanged['every_position']):.3f}"
            )
    for finding in findings:
        # A note is true of many drafters that work well.
        if finding.fault and finding.level != "note":
            fault(finding.fault).evidence.append(f"files ({finding.level}): {finding.text}")
    for seen in found:
        if seen.reads_one:
            for name in ("random-head", "wrong-map"):  # of all faults these alone leave nothing to accept
                fault(name).evidence.append(f"measured: {seen.words}")
        elif as_it_is and seen.accept_length < 0.8 * as_it_is:
            fault("engine").evidence.append(f"measured {seen.accept_length:.2f} where replay gives {as_it_is:.2f}")
    if not any(f.gain for f in likely.values()) and as_it_is and as_it_is > 1.02:
        fault("weak").evidence.append(f"replay: {as_it_is:.2f} as it is, and no alternative is better")
    return sorted(likely.values(), key=lambda f: (-(f.gain or 0), -len(f.evidence)))


def paired_gain(changed: list[float], unchanged: list[float]) -> tuple[float, bool]:
    """(mean gain over the answers, is it clear of chance). Both sides hold the same answers, so they are paired."""
    apart = np.asarray(changed, dtype=float) - np.asarray(unchanged, dtype=float)
    apart = apart[np.isfinite(apart)]  # an answer of K tokens or fewer has no whole chain
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.inf
    if not len(apart):
        return 0.0, False
    return float(apart.mean()), bool(apart.mean() > SURE * error)
