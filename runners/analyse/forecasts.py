"""Forecasts made before the cells they are about, and scored after: <runs>/<profile>/forecasts.csv.

The step model of an engine is fitted to what was measured so far. A drafter's accept length at another K comes from its
acceptance by position: 1 plus the survivals of the first K (beyond the longest chain measured, the last conditional
acceptance goes on). A synthetic accept length is known. A forecast counts only if it was made before its first cell
started. Each names the machine whose cells it was fitted to: what a step costs there says nothing of another one.
"""

import dataclasses
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from runners.analyse import crossover, machines, results, step_model, step_points
from runners.analyse.forecast_sources import Source, prompt_tokens, sources
from runners.core import provenance
from runners.core.errors import UserError
from runners.core.files import write_atomic
from runners.profiles import points
from runners.profiles.profile import Profile
from runners.serve import drafter_files

FILE = "forecasts.csv"
POINT = ["configuration", "workload", "concurrency"]  # what a forecast and its cells have in common
TERMS = " ".join(step_model.SYMBOLS)  # of the model that makes forecasts now
FIRST_TERMS = "a b c d e"  # of the model behind files without this column: no prompts, no f, a full batch
SYNTHETIC = "pretended"  # length_from of a synthetic accept length: stored data, so an older word than ours


@dataclass(frozen=True)
class UnmeasuredPoint:
    """A speculative point without cells, and what is known of it beforehand: all that the step model asks for."""

    configuration: str
    engine: str
    method: str
    k: int  # K
    workload: str
    concurrency: int  # C
    drafter: str  # whose cost it has (crossover.drafters_of)
    requests: int
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
    speed_up_lo: float
    speed_up_hi: float
    seen: bool  # the model was fitted to cells of this very point, under whatever configuration's name
    terms: str  # symbols of the model's coefficients
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
        # The model is of chains: a tree, or a K that the engine chose, is outside it.
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
            requests=profile.preset(preset).requests[concurrency],
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
    """The source's step model, asked for one point."""
    model, fitted = source.models[point.engine]
    row = step_model.forecasts(model, pd.DataFrame([dataclasses.asdict(point)])).iloc[0]
    # By what is served, not by its name: another profile may have measured the same point.
    served = [point.k, point.workload, point.concurrency, point.drafter]
    return Forecast(
        **dataclasses.asdict(point),
        **{c: round(float(row[c]), 4) for c in ("speed_up", "speed_up_lo", "speed_up_hi")},
        seen=bool((fitted[["k", "workload", "concurrency", "drafter"]] == served).all(axis=1).any()),
        terms=TERMS,
        fitted_to=source.name,
        machine=source.machine,
        made_at=made_at,
    )


def write(profile: Profile, preset: str | None, runs: Path) -> int:
    """Add forecasts for what is not measured yet; returns their number.

    Earlier forecasts stay as they were made. One that differs from an earlier one in its time alone is not added.
    """
    made, before = make(profile, preset, runs), read(runs, profile.name)
    made = made[~_without_time(made).isin(_without_time(before))]
    if len(made):
        both = [part for part in (before, made) if len(part)]
        text = pd.concat(both, ignore_index=True).to_csv(index=False, float_format="%.6g")
        write_atomic(results.home(runs, profile.name) / FILE, text.encode())
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
        missing = sorted(set(COLUMNS) - set(frame.columns))
        if missing:
            raise UserError(f"{profile}/{FILE} has no column {missing[0]}; {advice}.")
        figures = ["k", "concurrency", *step_points.LOAD, "context", "tokens_per_step"]
        figures += ["speed_up", "speed_up_lo", "speed_up_hi"]
        frame = frame.assign(**{c: pd.to_numeric(frame[c]) for c in figures})
        frame["made_at"] = pd.to_datetime(frame["made_at"], utc=True, format="ISO8601").map(pd.Timestamp.isoformat)
        return frame.astype({"concurrency": "int64"})[COLUMNS]
    except (OSError, ValueError) as error:
        detail = " ".join(str(error).split())[:120]
        raise UserError(f"{profile}/{FILE} cannot be read ({detail}); {advice}.") from error


def scored(runs: str | Path, profile: str) -> pd.DataFrame:
    """Forecasts beside what was measured after them: COLUMNS, then step_model.scored's columns, and elsewhere.

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
    elsewhere = [bool(m and here) and here.isdisjoint(m.split()) for m in before["machine"]]
    before = before.assign(elsewhere=elsewhere)
    measured = crossover.points(cells, results.requests(runs, profile), crossover.drafters(profile))
    parts = [step_model.scored(before, rows) for rows in measured.values()]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns) if parts else pd.DataFrame(columns=columns)


def of_new_points(runs: str | Path, *profiles: str) -> pd.DataFrame:
    """`scored` of these profiles together: points that the model had not seen, fitted to their own machine's cells."""
    scores = pd.concat([scored(runs, name) for name in profiles])
    return scores[~scores["seen"].astype(bool) & ~scores["elsewhere"].astype(bool)]
