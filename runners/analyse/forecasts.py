"""Forecasts made before the cells they are about, and scored after: <runs>/<profile>/forecasts.csv.

The step model of an engine is fitted to what was measured so far. A drafter's accept length at another K comes from its
acceptance by position (1 plus the survivals of the first K; beyond the longest chain measured the last conditional
acceptance goes on), a pretended one is known. A forecast counts only if it was made before its first cell started.
Each names the machine whose cells it was fitted to: what a step costs there is no forecast for another one.
"""

import functools
import numbers
import re
from pathlib import Path

import numpy as np
import pandas as pd

from runners.analyse import acceptance, crossover, machines, results, step_model, step_points
from runners.core import files, paths, provenance
from runners.core.acceptance_math import accept_length, survival
from runners.core.errors import UserError
from runners.core.files import write_atomic
from runners.profiles import load, points
from runners.profiles.profile import Profile
from runners.serve import drafter_files, model_files

FILE = "forecasts.csv"
PLACE = ["configuration", "workload", "concurrency"]
COLUMNS = [*step_points.POINT, "drafter", *step_points.LOAD, "context", "tokens_per_step", "length_from"]
COLUMNS += ["speed_up", "speed_up_lo", "speed_up_hi", "seen", "terms", "fitted_to", "machine", "made_at"]
TERMS = " ".join(step_model.SYMBOLS)  # of the model that makes forecasts now
FIRST_TERMS = "a b c d e"  # of the one that made those stored without a word on it: no prompts, no f, a full batch


class Source:
    """The cells of one profile in one place: what a forecast is made from."""

    def __init__(self, runs: Path, profile: str):
        self.runs, self.profile = runs, profile
        self.name = f"{profile}, {'published' if runs == paths.PUBLISHED_RUNS else 'this machine'}"
        self.cells = results.cells(runs, profile)
        found = load.load_if_known(profile)
        named = found.configurations.items() if found else ()
        home = results.home(runs, profile)
        self.drafter_of = {n: _measured_with(found, c.drafter, home / n) for n, c in named if c.drafter}
        self.machine = " ".join(sorted(machines.identities(runs, profile)))

    @functools.cached_property
    def models(self) -> crossover.Found:
        """Fitted when first asked for: every report makes its sources, and few of them are needed."""
        requests, groups = results.requests(self.runs, self.profile), crossover.drafters(self.profile)
        return crossover.models(crossover.points(self.cells, requests, groups))

    def prompt(self, workload: str) -> float | None:
        """Mean tokens of a prompt; None where this workload was not measured."""
        own = results.ok(self.cells)
        own = own[own.workload == workload].context_tokens.dropna()
        return float(own.mean()) if len(own) else None

    def length(self, engine: str, drafter: str, workload: str, k: int) -> tuple[float, str] | None:
        """(tokens per step at K, where from) by the acceptance by position of the drafter of this digest, on this
        workload or its base.
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


def _measured_with(profile: Profile, name: str, folder: Path) -> str | None:
    """The digest (drafters.digest) of the drafter that these cells were served with, by the record beside them; today's
    where there is no record, None where it was another one.
    """
    place = folder / "environment.json"
    if not place.is_file():
        return drafter_files.digest(profile, name)
    record = files.read_json(place, dict, "measure that configuration again")
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
    """The survivals of k positions; beyond those known each keeps the last known share of the one before it."""
    known = [s for s in survivals if np.isfinite(s)][:k]
    if not known:
        return [0.0] * k
    before = known[-2] if len(known) > 1 else 1.0
    share = known[-1] / before if before else 0.0
    while len(known) < k:
        known.append(known[-1] * share)
    return known


def sources(profile: Profile, runs: Path) -> list[Source]:
    """Nearest first: this profile's runs there, its published ones, those of the profile it extends; what another
    machine measured comes after all that this one did.
    """
    places = [(runs, profile.name), (paths.PUBLISHED_RUNS, profile.name)]
    if profile.extends:
        places += [(runs, profile.extends), (paths.PUBLISHED_RUNS, profile.extends)]
    found = [Source(*place) for place in dict.fromkeys(places)]
    here = provenance.machine_id()
    return sorted((s for s in found if len(s.cells)), key=lambda s: here not in s.machine.split())


def make(profile: Profile, depth: str | None, runs: Path) -> pd.DataFrame:
    """A forecast (COLUMNS) for every speculative point without a cell in `runs` that the sources can tell."""
    known = sources(profile, runs)
    groups = crossover.drafters_of(profile)
    measured = results.cells(runs, profile.name)
    started = set(zip(*(measured[c] for c in PLACE), strict=True))
    made_at, rows = provenance.now(), []
    for name in profile.at_depth(depth or profile.workload.default_depth):
        chosen = profile.configuration(name)
        if chosen.method != "eagle3":
            continue
        group = groups.get(name, name)
        source = next((s for s in known if _tells(s, chosen.engine, group)), None)
        asked = dict.fromkeys((p.workload, p.concurrency) for p in points.points(profile, depth, name))
        for workload, concurrency in asked if source else ():
            if (name, workload, concurrency) in started:
                continue
            prompt = _prompt(workload, known)
            length = _length(profile, name, workload, known)
            if prompt is None or length is None:
                continue
            at_once = min(concurrency, chosen.max_running_requests or concurrency)
            output = profile.workload.output_tokens
            row = [name, chosen.engine, chosen.method, chosen.k, workload, concurrency, group]
            row += [profile.depth(depth).requests[concurrency], at_once, prompt, output, prompt + output / 2]
            fit, fitted = source.models[chosen.engine]
            row = dict(zip(COLUMNS, [*row, *length], strict=False))
            told = step_model.forecasts(fit, pd.DataFrame([row])).iloc[0]
            row |= {c: round(float(told[c]), 4) for c in ("speed_up", "speed_up_lo", "speed_up_hi")}
            # By what is served, not by its name: another profile may have measured the same point.
            point = [chosen.k, workload, concurrency, group]
            seen = (fitted[["k", "workload", "concurrency", "drafter"]] == point).all(axis=1).any()
            row |= {"seen": bool(seen), "terms": TERMS, "fitted_to": source.name, "machine": source.machine}
            rows.append(row | {"made_at": made_at})
    return pd.DataFrame(rows, columns=COLUMNS)


def _tells(source: Source, engine: str, drafter: str) -> bool:
    return engine in source.models and drafter in source.models[engine][0].drafters


def _prompt(workload: str, known: list[Source]) -> float | None:
    """Mean tokens of a prompt as measured; chat@640 that nobody measured is chat with about 640 before it."""
    base, _, before = workload.partition("@")
    for name, more in ((workload, 0), (base, int(before or 0))):
        found = next((p for p in (s.prompt(name) for s in known) if p is not None), None)
        if found is not None:
            return found + more
    return None


def _length(profile: Profile, name: str, workload: str, known: list[Source]) -> tuple[float, str] | None:
    chosen = profile.configuration(name)
    if chosen.forced_accept_length is not None:
        return chosen.forced_accept_length, "pretended"
    digest = drafter_files.digest(profile, chosen.drafter)
    found = (s.length(chosen.engine, digest, workload, chosen.k) for s in known)
    return next((length for length in found if length is not None), None)


def write(profile: Profile, depth: str | None, runs: Path) -> int:
    """Add forecasts for what is not measured yet; returns their number. Earlier forecasts stay as they were made, and
    what was told before in the same words is not told again.
    """
    made, before = make(profile, depth, runs), read(runs, profile.name)
    made = made[~_words(made).isin(_words(before))]
    if len(made):
        both = [part for part in (before, made) if len(part)]
        text = pd.concat(both, ignore_index=True).to_csv(index=False, float_format="%.6g")
        write_atomic(results.home(runs, profile.name) / FILE, text.encode())
    return len(made)


def _words(frame: pd.DataFrame) -> pd.Series:
    """Each forecast without its time, as the file would hold it."""
    columns = [c for c in COLUMNS if c != "made_at"]
    text = frame[columns].map(lambda v: f"{v:.6g}" if isinstance(v, numbers.Real) else str(v))
    return text.agg(" ".join, axis=1) if len(text) else pd.Series(dtype=str)


def read(runs: str | Path, profile: str) -> pd.DataFrame:
    """All forecasts ever made for these runs; empty where none was. UserError for a file that cannot be read."""
    place = results.home(runs, profile) / FILE
    if not place.is_file():
        return pd.DataFrame(columns=COLUMNS)
    advice = "delete it: only its forecasts are lost"
    try:
        frame = pd.read_csv(place, dtype={"machine": str})  # a hash may be all digits
        if "terms" not in frame:
            frame = frame.assign(terms=FIRST_TERMS, **dict.fromkeys(step_points.LOAD, np.nan))
        frame["machine"] = frame["machine"].fillna("") if "machine" in frame else ""
        missing = sorted(set(COLUMNS) - set(frame.columns))
        if missing:
            raise UserError(f"{profile}/{FILE} has no column {missing[0]}; {advice}.")
        figures = ["k", "concurrency", *step_points.LOAD, "context", "tokens_per_step"]
        figures += ["speed_up", "speed_up_lo", "speed_up_hi"]
        frame = frame.assign(**{c: pd.to_numeric(frame[c]) for c in figures})
        frame["made_at"] = pd.to_datetime(frame["made_at"], utc=True, format="ISO8601").map(pd.Timestamp.isoformat)
        return frame.astype({"concurrency": "int64"})[COLUMNS]
    except (OSError, ValueError) as error:
        words = " ".join(str(error).split())[:120]
        raise UserError(f"{profile}/{FILE} cannot be read ({words}); {advice}.") from error


def scored(runs: str | Path, profile: str) -> pd.DataFrame:
    """Forecasts beside what was measured after them: COLUMNS, measured, error (relative), within, elsewhere.

    Of several forecasts for a point the last made before its first cell started counts. elsewhere: it was fitted to
    another machine's cells; a forecast that names no machine is from before any other had been measured.
    """
    made, cells = read(runs, profile), results.cells(runs, profile)
    columns = [*COLUMNS, "measured", "measured_length", "noise", "error", "within", "elsewhere"]
    if made.empty or cells.empty:
        return pd.DataFrame(columns=columns)
    starts = cells.groupby(PLACE).started_at.min().rename("started_at").reset_index()
    before = made.merge(starts, on=PLACE)
    stamps = [pd.to_datetime(before[c], utc=True, format="ISO8601") for c in ("made_at", "started_at")]
    before = before[stamps[0] < stamps[1]].sort_values("made_at").drop_duplicates(PLACE, keep="last")
    here = machines.identities(runs, profile)
    apart = [bool(m and here) and here.isdisjoint(m.split()) for m in before["machine"]]
    before = before.assign(elsewhere=apart)
    measured = crossover.points(cells, results.requests(runs, profile), crossover.drafters(profile))
    parts = [step_model.scored(before, rows) for rows in measured.values()]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns) if parts else pd.DataFrame(columns=columns)


def of_new_points(runs: str | Path, *profiles: str) -> pd.DataFrame:
    """`scored` of these profiles together: points that the model had not seen, told on their own machine."""
    scores = pd.concat([scored(runs, name) for name in profiles])
    return scores[~scores["seen"].astype(bool) & ~scores["elsewhere"].astype(bool)]
