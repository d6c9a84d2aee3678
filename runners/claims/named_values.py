"""Named figures for claims: what was reported, and what this machine's runs measured.

    case.<configuration>.c1 | c128 | accept_length | accept_rate | d      the case's table, as reported
    k25.lowest | highest        published accept lengths of drafters made for the case's target
    k26.ctx_<context>.c<C>      published throughput with EAGLE-3 over without, a sister model on the same kind of box
    audit.<name>                SGLang's releases, read from their wheels
    run.<configuration>.<workload>.c<C>.<figure>    measured; workload `all` is the pool
    sweep.<configuration>.<workload>.c<C>.<figure>  the same of the sweeps
    run.forecast.points | median | worst            forecasts made before measuring, of points not in their fit
    run.slots.<host|graph>.c<C>, run.replay.worst, run.drift.int4 | next_layer, run.offset.worst
    run.cause.<configuration>.<change>.served | replayed | accepted
    run.sibling.<noise>.agreement | same_text | repeated | drift
Dashes are written as underscores, `+` as `plus`. A figure of a void cell is Void, one that nobody measured Missing.
"""

import math
from pathlib import Path

import pandas as pd

from runners.analyse import crossover, forecasts, reported, results, step_cost, summarise, sweeps
from runners.claims.expressions import Figure
from runners.core import format, paths
from runners.core.format import significant_text
from runners.drafter import hidden_states, published_results
from runners.engines.registry import all_engines

COSTS = [
    *("tokens_per_step", "step_cost", "step_cost_lo", "step_cost_hi", "speed_up", "speed_up_lo", "speed_up_hi"),
    *("decode_speed_up", "decode_speed_up_lo", "decode_speed_up_hi", "stream_speed_up", "stream_speed_up_lo"),
    *("stream_speed_up_hi", "drafted", "accepted", "ceiling"),
]
SPEEDS = ["throughput", "stream", "ttft_ms", "tpot_ms"]


class Missing(LookupError):
    """Nobody measured it on this machine."""


class Void(LookupError):
    """Its cells are there and failed their gates."""


class NamedValues:
    """Figures by name; every lookup gives (value, text)."""

    def __init__(self, figures: dict[str, float], void: set[str] = frozenset()):
        self.figures, self.void = figures, void

    def __call__(self, name: str) -> Figure:
        value = self.figures.get(name)
        if value is None or math.isnan(value):
            raise Void(name) if _point(name) in self.void else Missing(name)
        return value, significant_text(value)


def _point(name: str) -> str:
    return name.rpartition(".")[0]


def word(text: str) -> str:
    """A name's part: letters, digits and underscores."""
    return format.slug(str(text).replace("+", "plus"))


def of(runs: str | Path, profile: str) -> NamedValues:
    """Everything there is for a profile's runs and its sweeps, and what was reported."""
    measured, void = _measured(runs, profile)
    swept, swept_void = _measured(runs, sweeps.profile_of(profile), "sweep")
    figures = reported_figures() | measured | swept | _alignment(str(runs), profile) | _forecasts(runs, profile)
    return NamedValues(figures, void | swept_void)


def reported_figures() -> dict[str, float]:
    """What others stated: the case's table, published figures, SGLang's releases."""
    return _case() | _published() | _audit()


def _case() -> dict[str, float]:
    found = {}
    for r in reported.case().itertuples():
        values = {"c1": r.single_stream_tok_s, "c128": r.c128_tok_s, "accept_length": r.accept_length}
        values |= {"accept_rate": r.accept_rate_as_printed, "d": r.num_draft_tokens}
        found |= {f"case.{word(r.configuration)}.{k}": float(v) for k, v in values.items() if pd.notna(v)}
    return found


def _published() -> dict[str, float]:
    lengths = reported.published_lengths()["accept_length"]
    found = {"k25.lowest": lengths.min(), "k25.highest": lengths.max()}
    sister = pd.read_csv(paths.DATA / "reported" / "public_k26_speculation.csv")
    for r in sister.dropna().itertuples():
        found[f"k26.ctx_{r.context}.c{r.concurrency}"] = r.tokens_per_second_eagle3 / r.tokens_per_second_base
    return found


def _audit() -> dict[str, float]:
    file = paths.DATA / "reported" / "sglang_releases.csv"
    if not file.is_file():
        return {}
    rows = pd.read_csv(file, dtype=str)
    caps = rows["default_cap"].str.split(", ").explode()
    caps = pd.to_numeric(caps, errors="coerce").dropna()
    return {
        "audit.releases": float(len(rows)),
        "audit.with_model": float((rows["kimi_k25"] == "present").sum()),
        "audit.needed": float((rows["patch"] == "needed").sum()),
        "audit.bonus_in_rate": float((rows["accept_rate"] == "AL / D").sum()),
        "audit.always_plus_one": float((rows["plus_one_deepseek_v2"] == "always").sum()),
        "audit.lowest_cap": float(caps.min()),
        "audit.highest_cap": float(caps.max()),
    }


def _forecasts(runs: str | Path, profile: str) -> dict[str, float]:
    """Errors of forecasts of points that the model had not seen, made before they were measured, on one machine."""
    new = forecasts.of_new_points(runs, profile, sweeps.profile_of(profile))
    if new.empty:
        return {}
    median, worst = crossover.errors(new)
    return {"run.forecast.points": float(len(new)), "run.forecast.median": median, "run.forecast.worst": worst}


def _measured(runs: str | Path, profile: str, prefix: str = "run") -> tuple[dict[str, float], set[str]]:
    cells = results.cells(runs, profile)
    found: dict[str, float] = {}
    if cells.empty:
        return found, set()
    requests = results.requests(runs, profile)
    void = set()
    for (configuration, workload, c), group in cells.groupby(["configuration", "workload", "concurrency"]):
        if not len(results.ok(group)):
            void |= {f"{prefix}.{word(configuration)}.{word(w)}.c{c}" for w in (workload, "all")}
            if group.method.iloc[0] == "none":  # nothing can be said over a base that does not count
                others = set(cells[cells.engine == group.engine.iloc[0]].configuration)
                void |= {f"{prefix}.{word(o)}.{word(w)}.c{c}" for o in others for w in (workload, "all")}
    for r in step_cost.step_costs(cells, requests).to_dict("records"):
        place = f"{prefix}.{word(r['configuration'])}.{word(r['workload'])}.c{r['concurrency']}"
        found |= {f"{place}.{name}": float(r[name]) for name in COSTS if pd.notna(r[name])}
    for r in summarise.summarise(cells, requests, with_pooled=True).to_dict("records"):
        place = f"{prefix}.{word(r['configuration'])}.{word(r['workload'])}.c{r['concurrency']}"
        for name in SPEEDS:
            found |= {
                f"{place}.{name}{end}": float(r[f"{name}{end}"])
                for end in ("", "_lo", "_hi")
                if pd.notna(r[f"{name}{end}"])
            }
    return found, void


def _alignment(runs: str, profile: str) -> dict[str, float]:
    found: dict[str, float] = {}
    replay = published_results.replay(runs, profile)
    if len(replay):
        found["run.replay.worst"] = float(replay["difference"].abs().max())
    for r in published_results.llamacpp_slots(runs, profile).itertuples():
        found[f"run.slots.{word(r.draft_sampling)}.c{r.concurrency}"] = float(r.served)
    drift = published_results.csv(runs, profile, "drift.csv", ["source", "boundary", "drift", "to_next"])
    if len(drift):
        rounding = [e.name for e in all_engines().values() if e.rounds_activations]
        found["run.drift.int4"] = float(drift.loc[drift["source"].isin(rounding), "drift"].median())
        found["run.drift.next_layer"] = float(drift["to_next"].median())
    slots = published_results.csv(runs, profile, "slots.csv", ["slot", "boundary", "distance", "source"])
    if len(slots):
        found["run.offset.worst"] = float(hidden_states.offsets_by_source(slots)["offset"].abs().max())
    for r in published_results.faults(runs, profile).itertuples():
        place = f"run.cause.{word(r.configuration)}.{word(r.change)}"
        values = {"served": r.accept_length_served, "replayed": r.accept_length_replayed, "accepted": r.accepted}
        found |= {f"{place}.{k}": float(v) for k, v in values.items() if pd.notna(v)}
    siblings = published_results.csv(runs, profile, "siblings.csv", ["noise"])
    for r in siblings.to_dict("records"):
        place = f"run.sibling.noise_{word(r['noise'])}"
        found |= {f"{place}.{k}": float(r[k]) for k in ("drift", "agreement", "repeated", "accept_length")}
        found[f"{place}.same_text"] = float(r["same_text_accept_length"])
    return found
