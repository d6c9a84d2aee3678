"""What a forecast is made from: the cells of a profile, the models fitted to them, their prompts and accept lengths."""

import functools
import re
from pathlib import Path

import numpy as np
import pandas as pd

from runners.analyse import acceptance, crossover, forecast_models, kept_out, machines, results
from runners.analyse.forecast_models import Models
from runners.analyse.step_points import POINT
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
    def points(self) -> dict[str, pd.DataFrame]:
        """engine -> its points (step_points.points)."""
        requests, groups = results.requests(self.runs, self.profile), crossover.drafters(self.profile)
        return crossover.points(self.cells, requests, groups)

    @functools.cached_property
    def models(self) -> dict[str, Models]:
        """Fitted when first asked for: every report makes its sources, and few of them are needed."""
        return {engine: forecast_models.fit(points) for engine, points in self.points.items()}

    def has_model(self, engine: str, drafter: str) -> bool:
        """Whether one of its models of that engine knows what this drafter costs."""
        return engine in self.models and self.models[engine].know(drafter)

    @functools.cached_property
    def _kept_out(self) -> dict[str, pd.DataFrame]:
        """`errors` of each engine that was asked for."""
        return {}

    def errors(self, engine: str) -> pd.DataFrame:
        """What forecasts of this engine err by, on its cells kept out in turn: POINT, kept, of, and
        log_cost and log_speed_up.

        Both are log of measured over forecast. log_cost: with the accept length known. log_speed_up: with the accept
        length forecast too; NaN where that cannot be done.
        """
        if engine not in self._kept_out:
            rows = kept_out.scored(kept_out.costs(self.points[engine]))
            cost = np.log(rows.measured.astype(float) / rows.speed_up.astype(float))
            lengths = np.array([self._length_without(row) for row in rows.itertuples()], float)
            length = np.log(rows.tokens_per_step.astype(float) / lengths)
            self._kept_out[engine] = rows[[*POINT, "kept", "of"]].assign(log_cost=cost, log_speed_up=cost + length)
        return self._kept_out[engine]

    def half_width(self, engine: str, length_known: bool) -> float:
        """Half an interval around the logarithm of a speed-up of this engine, forecast for the machine at hand.

        NaN where these are another machine's cells, or where too few of them could be kept out (kept_out.half_width).
        """
        if provenance.machine_id() not in self.machine.split():
            return float("nan")
        return kept_out.half_width(self.errors(engine)["log_cost" if length_known else "log_speed_up"].dropna())

    def _length_without(self, row) -> float:
        """The accept length of a point (a row of kept_out.costs) from the cells that were not kept out with it."""
        own = self.cells[self.cells.configuration == row.configuration]
        if own.forced_accept_length.notna().any():
            return float(own.forced_accept_length.dropna().iloc[0])
        drafter = self.drafter_of.get(row.configuration)
        by = "concurrency" if row.kept == kept_out.CONCURRENCY else "configuration"
        seen = self.cells[self.cells[by] != getattr(row, by)]
        known = self.length(row.engine, drafter, row.workload, int(row.k), seen) if drafter else None
        return known[0] if known else float("nan")

    def prompt(self, workload: str) -> float | None:
        """Mean tokens of a prompt; None where this workload was not measured."""
        own = results.ok(self.cells)
        own = own[own.workload == workload].context_tokens.dropna()
        return float(own.mean()) if len(own) else None

    def length(
        self, engine: str, drafter: str, workload: str, k: int, cells: pd.DataFrame | None = None
    ) -> tuple[float, str] | None:
        """(tokens per step at K = k, where from), by the acceptance by position of the drafter of this digest.

        On this workload, or on its base where it was not measured. None where neither was. cells: those to look at, all
        of the source by default.
        """
        names = [n for n, d in self.drafter_of.items() if d == drafter]
        own = results.ok(self.cells if cells is None else cells)
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
