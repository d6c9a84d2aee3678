"""The sweeps of a profile, in a profile of its own: pretended accept lengths, K, context and concurrency."""

from pathlib import Path

import pandas as pd

from runners import breakeven, intervals, payoff, tables

SPEED_UP = ["speed_up", "speed_up_lo", "speed_up_hi"]


def profile_of(profile: str) -> str:
    """The profile whose runs hold this one's sweeps."""
    return f"{profile}-sweeps"


class Sweeps:
    """What a profile's sweeps hold: `cells`, `requests`, and `costs` (breakeven.step_costs); empty where none ran."""

    def __init__(self, runs: str | Path, profile: str):
        self.profile = profile_of(profile)
        self.cells, self.requests = tables.cells(runs, self.profile), tables.requests(runs, self.profile)
        self.costs = breakeven.step_costs(self.cells, self.requests)
        self.asked = self.cells.groupby("configuration").forced_accept_length.first().dropna()

    def forced(self) -> pd.DataFrame:
        """Pretended accept lengths beside the decode speed-up measured: configuration, workload, concurrency, forced,
        shown (by the counters), speed_up with _lo, _hi, step_cost.
        """
        named = {"tokens_per_step": "shown"} | {f"decode_{name}": name for name in SPEED_UP}
        rows = self.costs[self.costs.configuration.isin(self.asked.index) & (self.costs.workload != "all")]
        rows = rows[["configuration", "workload", "concurrency", *named, "step_cost"]].rename(columns=named)
        rows.insert(3, "forced", rows.configuration.map(self.asked))
        return rows.reset_index(drop=True)

    def drafted(self) -> pd.DataFrame:
        """The same engines with real drafters: configuration, engine, k, workload, concurrency, tokens_per_step,
        step_cost, and the throughput's speed_up with _lo, _hi.
        """
        real = ~self.costs.configuration.isin(self.asked.index) & (self.costs.workload != "all")
        names = ["configuration", "engine", "k", "workload", "concurrency", "tokens_per_step", "step_cost", *SPEED_UP]
        return self.costs.loc[real, names].reset_index(drop=True)

    def models(self) -> payoff.Found:
        """The step model of each engine over K, context and concurrency at once; its points are the real drafters'."""
        found = payoff.models(self.cells, self.requests, payoff.drafters(self.profile)) if len(self.cells) else {}
        return {e: (m, points[~points.configuration.isin(self.asked.index)]) for e, (m, points) in found.items()}


def drafted_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """`Sweeps.drafted` for reading."""
    return pd.DataFrame(
        {
            "configuration": rows.configuration,
            "K": rows.k.astype(int),
            "workload": rows.workload,
            "C": rows.concurrency,
            "tokens per step": rows.tokens_per_step.round(2),
            "r": rows.step_cost.round(2),
            "throughput / base": [intervals.written(*v) for v in rows[SPEED_UP].itertuples(index=False)],
        }
    )


def fastest_k(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each engine's own drafters the K with the highest throughput over base, by workload and concurrency."""
    best = rows.sort_values("speed_up", ascending=False, kind="stable")
    best = best.drop_duplicates(["engine", "workload", "concurrency"])
    return best.sort_values(["engine", "workload", "concurrency"])
