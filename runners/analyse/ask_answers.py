"""What was found of two servers at each load: the report's own answer, its figures and what would turn it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from runners.analyse import acceptance, inference, open_points, results, step_cost
from runners.core import files
from runners.core.format import NOT_MEASURED, is_missing
from runners.measure.estimate import Clock
from runners.profiles.points import Comparison, Load, loads
from runners.profiles.profile import Profile

Triple = tuple[float, float | None, float | None]  # a figure with its interval; None: not known
GAUGE = "spec_accept_length"  # of an engine that exports no counts: the accept length of its last interval


@dataclass(frozen=True)
class Speeds:
    """One side, by the client's clock: medians of its good cells; milliseconds and tokens per second."""

    ttft_ms: float | None
    tpot_ms: float | None  # all decode time over all decode tokens
    tokens_per_second: float | None  # of all streams together


@dataclass(frozen=True)
class Answer:
    """One load. pays: yes, no, no difference, undecided, or not measured here (then `reasons` say why).

    ratio: throughput over the base's, its interval at `level`. accept_length: 1 + accepted / steps, where the counts
    are known, or a gauge's (`sampled`); per_step: tokens a decode step, steps without a draft among them; step_cost: r;
    decode_speed_up: per_step / r. more_minutes: that about decide an open point; None: none in sight.
    """

    workload: str
    concurrency: int
    pays: str
    ratio: Triple | None = None
    level: float | None = None
    blocks: int = 0
    margin: float = step_cost.MARGIN
    accept_length: float | None = None
    sampled: bool = False
    k: int | None = None
    survival: tuple[float, ...] = ()
    per_step: float | None = None
    step_cost: Triple | None = None
    decode_speed_up: Triple | None = None
    drafted: int | None = None
    capped_at: int | None = None  # the most requests that the servers run at once, where that is below C
    base: Speeds | None = None
    spec: Speeds | None = None
    more_minutes: float | None = None
    reasons: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()

    @property
    def needed_length(self) -> float | None:
        """The tokens a step from which decoding pays at this r: r (1 + margin)."""
        return None if self.step_cost is None else self.step_cost[0] * (1 + self.margin)


def answers(runs: Path, profile: Profile, base: str, spec: str) -> list[Answer]:
    """An answer for each load of a profile's two configurations, in the profile's order."""
    cells, requests = results.cells(runs, profile.name), results.requests(runs, profile.name)
    margin = profile.practical_margin
    costs = step_cost.step_costs(cells, requests, margin) if len(cells) else pd.DataFrame(columns=step_cost.COLUMNS)
    pooled = acceptance.pooled(cells, by=("workload", "concurrency")) if len(cells) else pd.DataFrame()
    still = open_points.of_cells(cells, margin).to_dict("records") if len(cells) else []
    clock = Clock(profile, None, runs)
    found = []
    for load in loads(profile, Comparison(base, spec)):
        at = cells[(cells["workload"] == load.workload) & (cells["concurrency"] == load.concurrency)]
        row = _row(costs, load)
        if row is None or is_missing(row["speed_up"]):
            reasons = _reasons(at) or _failures(runs / profile.name, (base, spec)) or ("there was no time for it",)
            found.append(Answer(*load, NOT_MEASURED, reasons=reasons, not_seen=_not_seen(at)))
            continue
        counts = _row(pooled, load) or {}
        mine = next((r for r in still if Load(r["workload"], int(r["concurrency"])) == load), None)
        more = _more(mine, clock, load, base, spec)
        found.append(_answer(load, row, counts, at, (base, spec), margin, more))
    return found


def _answer(
    load: Load,
    row: dict[str, Any],
    counts: dict[str, Any],
    at: pd.DataFrame,
    names: tuple[str, str],
    margin: float,
    more: float | None,
) -> Answer:
    base, spec = (results.ok(at[at["configuration"] == name]) for name in names)
    length, per_step = _number(counts, "accept_length"), _number(row, "tokens_per_step")
    step, faster = _triple(row, "step_cost"), _triple(row, "decode_speed_up")
    sampled = _sampled(spec) if length is None else None
    if sampled is not None and faster is not None:  # r from what is known: AL over the decode speed-up
        per_step, step = sampled, (sampled / faster[0], None, None)
    survival = counts.get("survival")
    return Answer(
        *load,
        pays=row["pays"],
        ratio=_triple(row, "speed_up"),
        level=float(row["level"]),
        blocks=int(row["n_blocks"]),
        margin=margin,
        accept_length=sampled if length is None else length,
        sampled=sampled is not None,
        k=None if is_missing(row["k"]) else int(row["k"]),
        survival=tuple(float(s) for s in survival) if isinstance(survival, list) else (),
        per_step=per_step,
        step_cost=step,
        decode_speed_up=faster,
        drafted=None if is_missing(row["drafted"]) else int(row["drafted"]),
        capped_at=None if is_missing(row["capped_at"]) else int(row["capped_at"]),
        base=_speeds(base),
        spec=_speeds(spec),
        more_minutes=more,
        reasons=_reasons(at),
        not_seen=_not_seen(at),
    )


def _row(frame: pd.DataFrame, load: Load) -> dict[str, Any] | None:
    if frame.empty:
        return None
    mine = frame[(frame["workload"] == load.workload) & (frame["concurrency"] == load.concurrency)]
    return None if mine.empty else dict(mine.iloc[0])


def _number(row: dict[str, Any], name: str) -> float | None:
    value: Any = row.get(name)
    return None if is_missing(value) else float(value)


def _triple(row: dict[str, Any], name: str) -> Triple | None:
    point = _number(row, name)
    return None if point is None else (point, _number(row, f"{name}_lo"), _number(row, f"{name}_hi"))


def _speeds(cells: pd.DataFrame) -> Speeds:
    """Medians over the cells of one side; TPOT as a ratio of sums."""

    def median(column: str) -> float | None:
        value = cells[column].astype(float).median()
        return None if is_missing(value) else float(value)

    if cells.empty:
        return Speeds(None, None, None)
    seconds, tokens = (float(cells[c].astype(float).sum()) for c in ("decode_seconds", "decode_tokens"))
    tpot = 1000 * seconds / tokens if tokens else median("tpot_ms_p50")
    return Speeds(median("ttft_ms_p50"), tpot, median("output_tokens_per_second"))


def _sampled(cells: pd.DataFrame) -> float | None:
    """The mean of an accept length that an engine shows as a gauge and not in counts."""
    if "gauges" not in cells:
        return None
    values = [g[GAUGE] for g in cells["gauges"] if isinstance(g, dict) and g.get(GAUGE)]
    return sum(values) / len(values) if values else None


def _reasons(at: pd.DataFrame) -> tuple[str, ...]:
    """Why cells of a load are void, each reason once, with its side."""
    void = at[at["status"] != "ok"]
    every = [f"{r['configuration']}: {reason}" for r in void.to_dict("records") for reason in r["reasons"] or []]
    return tuple(dict.fromkeys(every))


def _failures(folder: Path, names: tuple[str, str]) -> tuple[str, ...]:
    """Why a side was not measured at all, from its status."""
    found = []
    for name in names:
        path = folder / name / "status.json"
        reason = files.read_json(path, dict, "ask again").get("reason") if path.is_file() else None
        found += [f"{name}: {reason}"] if reason else []
    return tuple(found)


def _not_seen(at: pd.DataFrame) -> tuple[str, ...]:
    """What the servers did not show, each once, with its side."""
    if "not_seen" not in at:
        return ()
    rows = at[["configuration", "not_seen"]].to_dict("records")
    every = [f"{r['configuration']}: {what}" for r in rows if isinstance(r["not_seen"], list) for what in r["not_seen"]]
    return tuple(dict.fromkeys(every))


def _more(row: dict[str, Any] | None, clock: Clock, load: Load, base: str, spec: str) -> float | None:
    """About how many more minutes decide an open point, if its ratio is what it seems."""
    if row is None or row["pays"] != inference.UNDECIDED:
        return None
    starts = open_points.expected_starts(row)
    return None if starts is None else starts * clock.visit((base, spec), [load]).total / 60
