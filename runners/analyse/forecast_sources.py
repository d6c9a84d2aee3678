"""What a forecast is made from: the cells of a profile, their step models, prompts and accept lengths."""

import functools
import re
from pathlib import Path

import numpy as np

from runners.analyse import acceptance, crossover, machines, results, step_model
from runners.core import files, paths, provenance
from runners.core.acceptance_math import accept_length, survival
from runners.profiles import load
from runners.profiles.profile import Profile
from runners.serve import drafter_files, model_files


class Source:
    """The cells of one profile in one runs folder.

    drafter_of: configuration -> the digest of the drafter that its cells were served with; machine: identities of the
    machines that the cells come from, joined by spaces.
    """

    def __init__(self, runs: Path, profile: str):
        self.runs, self.profile = runs, profile
        self.name = f"{profile}, {'published' if runs == paths.PUBLISHED_RUNS else 'this machine'}"
        self.cells = results.cells(runs, profile)
        plan = load.load_if_known(profile)
        home = results.home(runs, profile)
        self.drafter_of: dict[str, str | None] = {}
        if plan is not None:
            drafters = {n: c.drafter for n, c in plan.configurations.items() if c.drafter}
            self.drafter_of = {n: _served_drafter(plan, drafter, home / n) for n, drafter in drafters.items()}
        self.machine = " ".join(sorted(machines.identities(runs, profile)))

    @functools.cached_property
    def models(self) -> step_model.Models:
        """Fitted when first asked for: every report makes its sources, and few of them are needed."""
        requests, groups = results.requests(self.runs, self.profile), crossover.drafters(self.profile)
        return step_model.models(crossover.points(self.cells, requests, groups))

    def has_model(self, engine: str, drafter: str) -> bool:
        """Whether its step model of that engine knows what this drafter costs."""
        return engine in self.models and drafter in self.models[engine][0].drafters

    def prompt(self, workload: str) -> float | None:
        """Mean tokens of a prompt; None where this workload was not measured."""
        own = results.ok(self.cells)
        own = own[own.workload == workload].context_tokens.dropna()
        return float(own.mean()) if len(own) else None

    def length(self, engine: str, drafter: str, workload: str, k: int) -> tuple[float, str] | None:
        """(tokens per step at K = k, where from), by the acceptance by position of the drafter of this digest.

        On this workload, or on its base where it was not measured. None where neither was.
        """
        names = [n for n, d in self.drafter_of.items() if d == drafter]
        own = results.ok(self.cells)
        own = own[own.configuration.isin(names) & (own.engine == engine) & own.forced_accept_length.isna()]
        own = own[own.steps.notna() & (own.method == "eagle3")]
        base = workload.partition("@")[0]  # chat@640 is chat with more before it
        at = own[own.workload == workload]
        at = at if len(at) else own[[w.partition("@")[0] == base for w in own.workload]]
        if at.empty:
            return None
        longest = at[at.k == at.k.max()]
        counts = acceptance.sums(longest) | longest.iloc[0][["engine", "method"]].to_dict()
        survivals = survival(counts["accepted_per_position"] or [], counts["steps"])
        # What the answers' ends cut off is cut off at any K.
        cut = acceptance.tokens_per_step(counts) / accept_length(counts["steps"], counts["accepted"])
        return cut * (1 + sum(extended(survivals, k))), f"positions of {longest.configuration.iloc[0]}"


def _served_drafter(profile: Profile, name: str, folder: Path) -> str | None:
    """The digest (drafter_files.digest) of the drafter that the cells in `folder` were served with.

    By the record beside the cells; today's digest where there is no record, None where it was another drafter.
    """
    path = folder / "environment.json"
    if not path.is_file():
        return drafter_files.digest(profile, name)
    record = files.read_json(path, dict, "measure that configuration again")
    if record.get("drafter"):
        return record["drafter"]
    # Older records name a drafter that was made by its folder, a published one by its weights.
    made = re.search(r"/drafters/[\w-]+-([0-9a-f]{12})/", " ".join(map(str, record.get("argv") or ())))
    if made:
        return made[1]
    weights = (record.get("checksums") or {}).get("drafter_folder")
    now = model_files.provenance(model_files.planned_files(profile, name)).get("drafter_folder")
    return drafter_files.digest(profile, name) if weights and weights == now else None


def extended(survivals: list[float], k: int) -> list[float]:
    """Survival at k positions: those known, then each as likely after the one before it as the last known one was."""
    known = [s for s in survivals if np.isfinite(s)][:k]
    if not known:
        return [0.0] * k
    before = known[-2] if len(known) > 1 else 1.0
    share = known[-1] / before if before else 0.0
    while len(known) < k:
        known.append(known[-1] * share)
    return known


def sources(profile: Profile, runs: Path) -> list[Source]:
    """Sources with cells, nearest first: this profile's in `runs`, its published ones, those of the profile it extends.

    What another machine measured comes behind all that this machine did.
    """
    homes = [(runs, profile.name), (paths.PUBLISHED_RUNS, profile.name)]
    if profile.extends:
        homes += [(runs, profile.extends), (paths.PUBLISHED_RUNS, profile.extends)]
    every = [Source(*home) for home in dict.fromkeys(homes)]
    here = provenance.machine_id()
    return sorted((s for s in every if len(s.cells)), key=lambda s: here not in s.machine.split())


def prompt_tokens(workload: str, known: list[Source]) -> float | None:
    """Mean tokens of a prompt as measured; chat@640 that nobody measured is chat with about 640 tokens before it."""
    base, _, before = workload.partition("@")
    for name, more in ((workload, 0), (base, int(before or 0))):
        measured = next((p for p in (s.prompt(name) for s in known) if p is not None), None)
        if measured is not None:
            return measured + more
    return None
