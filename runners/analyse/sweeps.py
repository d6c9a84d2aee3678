"""The sweeps of a profile: synthetic accept lengths, K, context and concurrency. They have a profile of their own."""

import functools
from pathlib import Path

import pandas as pd

from runners.analyse import crossover, results, step_cost, step_model
from runners.profiles import load
from runners.profiles.methods import CHAINS
from runners.profiles.profile import Profile

SPEED_UP = ["speed_up", "speed_up_lo", "speed_up_hi"]
COST = ["step_cost", "step_cost_lo", "step_cost_hi"]
ITSELF = "the target itself"


def profile_of(profile: str) -> str:
    """The profile whose runs hold this one's sweeps."""
    return f"{profile}-sweeps"


def is_sweep(profile: Profile) -> bool:
    """Does the profile hold another one's sweeps? It has no chapters then: those of the profile it extends show it."""
    return profile.extends is not None and profile.name == profile_of(profile.extends)


class Sweeps:
    """A profile's sweeps: `cells`, `requests` and `costs` (step_cost.step_costs); empty where none ran.

    synthetic: configuration -> the accept length that its engine is set to simulate; drafter_of: crossover.drafters.
    """

    def __init__(self, runs: str | Path, profile: str):
        self.profile = profile_of(profile)
        self.cells, self.requests = results.cells(runs, self.profile), results.requests(runs, self.profile)
        self.costs = step_cost.step_costs(self.cells, self.requests)
        self.drafter_of = crossover.drafters(self.profile)
        self.synthetic = self.cells.groupby("configuration").forced_accept_length.first().dropna()

    @functools.cached_property
    def points(self) -> dict[str, pd.DataFrame]:
        """engine -> step_points.points of its configurations."""
        return crossover.points(self.cells, self.requests, self.drafter_of)

    def forced(self) -> pd.DataFrame:
        """Synthetic acceptance: configuration, workload, concurrency, forced (the accept length asked for), shown
        (tokens per step by the counters), the decode speed_up with _lo, _hi, step_cost.
        """
        named = {"tokens_per_step": "shown"} | {f"decode_{name}": name for name in SPEED_UP}
        rows = self.costs[self.costs.configuration.isin(self.synthetic.index) & (self.costs.workload != "all")]
        rows = rows[["configuration", "workload", "concurrency", *named, "step_cost"]].rename(columns=named)
        rows.insert(3, "forced", rows.configuration.map(self.synthetic))
        return rows.reset_index(drop=True)

    def drafted(self) -> pd.DataFrame:
        """Real drafters on the same engines: configuration, engine, k, workload, concurrency, tokens_per_step,
        step_cost, and the throughput's speed_up with _lo, _hi.
        """
        real = ~self.costs.configuration.isin(self.synthetic.index) & (self.costs.workload != "all")
        names = ["configuration", "engine", "k", "workload", "concurrency", "tokens_per_step", "step_cost", *SPEED_UP]
        return self.costs.loc[real, names].reset_index(drop=True)

    def at_their_best(self) -> pd.DataFrame:
        """`drafted` without drafters made worse on purpose and without the target as its own drafter."""
        rows, plan = self.drafted(), load.load_if_known(self.profile)
        configurations = plan.configurations if plan else {}
        whole = [n for n, c in configurations.items() if c.drafter and plan.drafters[c.drafter].source is None]
        return rows[rows.configuration.isin(whole)].reset_index(drop=True)

    def graded(self) -> pd.DataFrame:
        """Step cost beside acceptance at one K, for a drafter that was served at two accept lengths or more.

        Columns: engine, workload, k, concurrency, drafter, configuration, tokens_per_step, step_cost with _lo, _hi,
        batch (how many decoded at once). Synthetic accept lengths are among them. The target as its own drafter stands
        beside them: everything is accepted, at another cost.
        """
        rows = self.costs[self.costs.method.isin(CHAINS) & (self.costs.workload != "all")]
        rows = rows.assign(drafter=rows.configuration.map(self.drafter_of).fillna(ITSELF))
        at = ["engine", "workload", "k"]
        several = rows.groupby([*at, "drafter"]).configuration.nunique()
        graded = several[several > 1].reset_index()[at].drop_duplicates()
        rows = rows.merge(graded, on=at).merge(
            self._batches(), on=["configuration", "workload", "concurrency"], how="left"
        )
        names = [*at, "concurrency", "drafter", "configuration", "tokens_per_step", *COST, "batch"]
        return rows[names].sort_values([*at, "concurrency", "drafter", "tokens_per_step"]).reset_index(drop=True)

    def _batches(self) -> pd.DataFrame:
        """Mean number of requests that decode at once: configuration, workload, concurrency, batch."""
        columns = ["configuration", "workload", "concurrency", "batch"]
        parts = [rows[columns] for rows in self.points.values()]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)

    def models(self) -> step_model.Models:
        """The step model of each engine over K, context and concurrency at once; its points are the real drafters'."""
        fitted = step_model.models(self.points)
        return {e: (m, points[~points.configuration.isin(self.synthetic.index)]) for e, (m, points) in fitted.items()}


def fastest_k(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each engine's own drafters the K with the highest throughput over base, by workload and concurrency."""
    best = rows.sort_values("speed_up", ascending=False, kind="stable")
    best = best.drop_duplicates(["engine", "workload", "concurrency"])
    return best.sort_values(["engine", "workload", "concurrency"])
