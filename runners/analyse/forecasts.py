"""Forecasts made before the cells they are about, and scored after: <runs>/<profile>/forecasts.csv.

The models of an engine (forecast_models.py) are fitted to what was measured so far. A drafter's accept length at
another K comes from its acceptance by position: 1 plus the survivals of the first K (beyond the longest chain measured,
the last conditional acceptance goes on). A synthetic accept length is known. A forecast counts only if it was made
before its first cell started. Each names the model that made it, and the machine whose cells it was fitted to: what a
step costs there says nothing of another one.

The interval is made of what such forecasts erred by on the same machine's kept-out cells (kept_out.half_width): around
a synthetic accept length the errors of the step's cost, else those of both. With too few of them, or from another
machine's cells, there is none: lo and hi are empty.
"""

import dataclasses
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from runners.analyse import crossover, forecast_models, machines, results, step_model, step_points
from runners.analyse.forecast_sources import Source, prompt_tokens, sources
from runners.core import provenance
from runners.core.errors import UserError
from runners.core.files import write_atomic
from runners.profiles import points
from runners.profiles.profile import Profile
from runners.serve import drafter_files

FILE = "forecasts.csv"
POINT = ["configuration", "workload", "concurrency"]  # what a forecast and its cells have in common
TERMS = " ".join(step_model.SYMBOLS)  # of the step model that has a part in forecasts now
FIRST_TERMS = "a b c d e"  # of the model behind files without this column: no prompts, no f, a full batch
SPEED_UP = ["speed_up", "speed_up_lo", "speed_up_hi"]
FIRST_MODEL = forecast_models.STEP_MODEL  # it alone made the forecasts of files without the column `model`
SYNTHETIC = "pretended"  # length_from of a synthetic accept length: stored data, so an older word than ours


@dataclass(frozen=True)
class UnmeasuredPoint:
    """A speculative point without cells, and what is known of it beforehand: all that the models ask for."""

    configuration: str
    engine: str
    method: str
    k: int  # K
    workload: str
    concurrency: int  # C
    drafter: str  # whose cost it has (crossover.drafters_of)
    requests: float  # of a burst; NaN for a window in which C stay in flight, as cells are measured now
    at_once: int  # C, or the lower cap on running requests
    prompt: float  # tokens
    output: int  # tokens
    context: float  # tokens that a step attends to on average
    tokens_per_step: float
    length_from: str  # where tokens_per_step comes from


@dataclass(frozen=True)
class Forecast(UnmeasuredPoint):
    """One row of forecasts.csv: the fields are its columns, in this order."""

    speed_up: float
    speed_up_lo: float  # NaN without an interval
    speed_up_hi: float
    seen: bool  # the model was fitted to cells of this very point, under whatever configuration's name
    model: str  # of forecast_models.MODELS
    terms: str  # symbols of the step model's coefficients
    fitted_to: str  # Source.name
    machine: str  # Source.machine
    made_at: str  # ISO 8601, UTC


COLUMNS = [field.name for field in dataclasses.fields(Forecast)]


def make(profile: Profile, preset: str | None, runs: Path) -> pd.DataFrame:
    """A forecast (COLUMNS) for every speculative point without a cell in `runs` of which the sources know enough."""
    known, drafters = sources(profile, runs), crossover.drafters_of(profile)
    measured = results.cells(runs, profile.name)
    started = set(zip(*(measured[c] for c in POINT), strict=True))
    made_at, made = provenance.now(), []
    for name in profile.at_preset(preset or profile.workload.default_preset):
        chosen = profile.configuration(name)
        # The models are of chains: a tree, or a K that the engine chose, is outside them.
        if profile.method_of(name) != "eagle3" or chosen.k is None:
            continue
        drafter = drafters.get(name, name)
        source = next((s for s in known if s.has_model(chosen.engine, drafter)), None)
        if source is not None:
            to_come = _unmeasured(profile, preset, name, drafter, started, known)
            made += [_forecast(point, source, made_at) for point in to_come]
    return pd.DataFrame([dataclasses.asdict(forecast) for forecast in made], columns=COLUMNS)


def _unmeasured(
    profile: Profile, preset: str | None, name: str, drafter: str, started: set[tuple], known: list[Source]
) -> Iterator[UnmeasuredPoint]:
    """The points of one configuration that no cell was begun for, and whose prompt and accept length are known."""
    chosen, output = profile.configuration(name), profile.workload.output_tokens
    for workload, concurrency in points.loads(profile, points.Comparison(name)):
        if (name, workload, concurrency) in started:
            continue
        prompt, length = prompt_tokens(workload, known), _length(profile, name, workload, known)
        if prompt is None or length is None:
            continue
        yield UnmeasuredPoint(
            configuration=name,
            engine=chosen.engine,
            method=chosen.method,
            k=chosen.k,
            workload=workload,
            concurrency=concurrency,
            drafter=drafter,
            requests=np.nan,
            at_once=min(concurrency, chosen.max_running_requests or concurrency),
            prompt=prompt,
            output=output,
            context=prompt + output / 2,
            tokens_per_step=length[0],
            length_from=length[1],
        )


def _length(profile: Profile, name: str, workload: str, known: list[Source]) -> tuple[float, str] | None:
    """(tokens per step, where from): a synthetic one is set, another comes from the first source that knows it."""
    chosen = profile.configuration(name)
    if chosen.forced_accept_length is not None:
        return chosen.forced_accept_length, SYNTHETIC
    digest = drafter_files.digest(profile, chosen.drafter)
    lengths = (s.length(chosen.engine, digest, workload, chosen.k) for s in known)
    return next((length for length in lengths if length is not None), None)


def _forecast(point: UnmeasuredPoint, source: Source, made_at: str) -> Forecast:
    """The source's models, asked for one point."""
    asked = pd.DataFrame([dataclasses.asdict(point)])
    row = forecast_models.forecasts(source.models[point.engine], asked).iloc[0]
    half = source.half_width(point.engine, length_known=point.length_from == SYNTHETIC)
    # By what is served, not by its name: another profile may have measured the same point.
    served = [point.k, point.workload, point.concurrency, point.drafter]
    fitted = source.points[point.engine][["k", "workload", "concurrency", "drafter"]]
    return Forecast(
        **dataclasses.asdict(point),
        speed_up=round(float(row.speed_up), 4),
        speed_up_lo=round(float(row.speed_up * np.exp(-half)), 4),
        speed_up_hi=round(float(row.speed_up * np.exp(half)), 4),
        seen=bool((fitted == served).all(axis=1).any()),
        model=str(row.model),
        terms=TERMS,
        fitted_to=source.name,
        machine=source.machine,
        made_at=made_at,
    )


def new(profile: Profile, preset: str | None, runs: Path) -> pd.DataFrame:
    """`make` without those that differ from a stored one in their time alone."""
    made, before = make(profile, preset, runs), read(runs, profile.name)
    return made[~_without_time(made).isin(_without_time(before))]


def add(profile: Profile, runs: Path, made: pd.DataFrame) -> None:
    """Store forecasts behind the earlier ones, which stay as they were made."""
    both = [part for part in (read(runs, profile.name), made) if len(part)]
    text = pd.concat(both, ignore_index=True).to_csv(index=False, float_format="%.6g")
    write_atomic(results.home(runs, profile.name) / FILE, text.encode())


def write(profile: Profile, preset: str | None, runs: Path) -> int:
    """Store `new` forecasts for what is not measured yet; returns their number."""
    made = new(profile, preset, runs)
    if len(made):
        add(profile, runs, made)
    return len(made)


def _without_time(frame: pd.DataFrame) -> pd.Series:
    """Each forecast but for its time, as the text that the file would hold."""
    columns = [c for c in COLUMNS if c != "made_at"]
    text = frame[columns].map(lambda v: f"{v:.6g}" if isinstance(v, numbers.Real) else str(v))
    return text.agg(" ".join, axis=1) if len(text) else pd.Series(dtype=str)


def read(runs: str | Path, profile: str) -> pd.DataFrame:
    """All forecasts ever made for these runs; empty where none was. UserError for a file that cannot be read."""
    path = results.home(runs, profile) / FILE
    if not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    advice = "delete it: only its forecasts are lost"
    try:
        frame = pd.read_csv(path, dtype={"machine": str})  # a hash may be all digits
        if "terms" not in frame:
            frame = frame.assign(terms=FIRST_TERMS, **dict.fromkeys(step_points.LOAD, np.nan))
        frame["machine"] = frame["machine"].fillna("") if "machine" in frame else ""
        frame["model"] = frame["model"].fillna(FIRST_MODEL) if "model" in frame else FIRST_MODEL
        missing = sorted(set(COLUMNS) - set(frame.columns))
        if missing:
            raise UserError(f"{profile}/{FILE} has no column {missing[0]}; {advice}.")
        figures = ["k", "concurrency", *step_points.LOAD, "context", "tokens_per_step", *SPEED_UP]
        frame = frame.assign(**{c: pd.to_numeric(frame[c]) for c in figures})
        frame["made_at"] = pd.to_datetime(frame["made_at"], utc=True, format="ISO8601").map(pd.Timestamp.isoformat)
        return frame.astype({"concurrency": "int64"})[COLUMNS]
    except (OSError, ValueError) as error:
        detail = " ".join(str(error).split())[:120]
        raise UserError(f"{profile}/{FILE} cannot be read ({detail}); {advice}.") from error


def scored(runs: str | Path, profile: str) -> pd.DataFrame:
    """Forecasts beside what was measured after them: COLUMNS, then forecast_models.scored's columns, within (its
    interval; missing where it has none), and elsewhere.

    Of several forecasts for a point the last made before its first cell started counts. elsewhere: it was fitted to
    another machine's cells; a forecast that names no machine is from before any other had been measured.
    """
    made, cells = read(runs, profile), results.cells(runs, profile)
    columns = [*COLUMNS, "measured", "measured_length", "noise", "error", "within", "elsewhere"]
    if made.empty or cells.empty:
        return pd.DataFrame(columns=columns)
    starts = cells.groupby(POINT).started_at.min().rename("started_at").reset_index()
    before = made.merge(starts, on=POINT)
    stamps = [pd.to_datetime(before[c], utc=True, format="ISO8601") for c in ("made_at", "started_at")]
    before = before[stamps[0] < stamps[1]].sort_values("made_at").drop_duplicates(POINT, keep="last")
    here = machines.identities(runs, profile)
    before = before.assign(elsewhere=[bool(m and here) and here.isdisjoint(m.split()) for m in before["machine"]])
    measured = crossover.points(cells, results.requests(runs, profile), crossover.drafters(profile))
    parts = [forecast_models.scored(before, points) for points in measured.values()]
    if not parts:
        return pd.DataFrame(columns=columns)
    scores = pd.concat(parts, ignore_index=True)
    within = ((scores.speed_up_lo <= scores.measured) & (scores.measured <= scores.speed_up_hi)).astype("boolean")
    return scores.assign(within=within.mask(scores.speed_up_lo.isna())).reindex(columns=columns)


def of_new_points(runs: str | Path, *profiles: str) -> pd.DataFrame:
    """`scored` of these profiles together: points that the model had not seen, fitted to their own machine's cells."""
    scores = pd.concat([scored(runs, name) for name in profiles], ignore_index=True)
    return scores[~scores["seen"].astype(bool) & ~scores["elsewhere"].astype(bool)]


def of_latest_form(scores: pd.DataFrame) -> pd.DataFrame:
    """Those of `scored` that the same model with the same terms made as the last one of them."""
    if scores.empty:
        return scores
    last = scores.loc[scores["made_at"].idxmax()]
    return scores[(scores["model"] == last["model"]) & (scores["terms"] == last["terms"])]
