"""Chapter Does it reproduce?: this report's runs beside other runs of its profile, by ratio, by use, by claim."""

from pathlib import Path

import pandas as pd

from runners.analyse import compare_runs, crossover, forecasts, kept_out, machines, results, sweeps
from runners.analyse.compare_runs import AGREE, DIFFER, UNDECIDED, WITHOUT, by_chance
from runners.analyse.multiple_comparisons import FALSE_DISCOVERIES
from runners.analyse.verdict import decide
from runners.analyse.verdict.answers import USES
from runners.claims import reproduction
from runners.claims.reproduction import HERE, NOTHING, Side
from runners.core import format


def load(runs: str | Path, profile: str) -> list[Side]:
    """This report's runs first, then every other set; empty where this report holds no cell (`reproduction.sides`)."""
    return reproduction.sides(runs, profile)


def glue_values(found: list[Side]) -> dict[str, str]:
    """The sentence that the book's first page quotes from this chapter."""
    return {"reproduction_sentence": front_page_sentence(found)}


def comparable(found: list[Side]) -> pd.DataFrame:
    """The ratios of this report beside the next set of runs whose difference can be tested."""
    if len(found) < 2:
        return pd.DataFrame()
    pairs = compare_runs.pairs(found[0].costs, found[1].costs)
    return pairs[pairs["outcome"] != UNDECIDED]


def pairs_table(found: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """`compare_runs.pairs` of two sets of runs, which a and b name."""
    return pd.DataFrame(
        {
            "configuration": found["configuration"],
            "workload": found["workload"],
            "C": found["concurrency"],
            "ratio": found["what"],
            a: [format.interval_text(*v) for v in found["a"]],
            b: [format.interval_text(*v) for v in found["b"]],
            f"{b} / {a}": [f"{v:.2f}" for v in found["b_over_a"]],
            "outcome": found["outcome"],
        }
    )


def agreement_sentence(found: pd.DataFrame) -> str:
    """How many ratios agree, how many would differ by chance, and the size of the typical difference."""
    if found.empty:
        return "The two have no measured point in common."
    counts = found["outcome"].value_counts()
    apart = (found["b_over_a"] - 1).abs()
    against = int(found["contradiction"].sum())
    kept = int((found["q"] <= FALSE_DISCOVERIES).sum())
    tested = found[found["outcome"] != UNDECIDED]
    unknown = len(tested) and (tested["judged"] == WITHOUT).all()
    caveat = f" ({WITHOUT}, so this is too strict)" if unknown else ""
    return (
        f"{counts.get(AGREE, 0)} of {len(found)} ratios agree, {counts.get(DIFFER, 0)} differ (about "
        f"{by_chance(found):.1f} would by chance alone; {kept} with the false discovery rate kept at "
        f"{FALSE_DISCOVERIES:.0%}){caveat}, {counts.get(UNDECIDED, 0)} undecided; {against} answers contradict each "
        f"other, yes against no; median difference {apart.median():.1%}, largest {apart.max():.1%}."
    )


def machines_sentence(found: pd.DataFrame, start: float, a: str = "A", b: str = "B") -> str:
    """How fast and how steady two machines were without speculation, a line an engine; empty where that is unknown.

    found: machines.speeds; start: machines.startup_ratio, the second machine's start-up time over the first's.
    """
    lines = []
    for r in found.itertuples():
        scatter = [format.NOT_MEASURED if pd.isna(s) else f"{s:.1%}" for s in (r.scatter_a, r.scatter_b)]
        lines.append(
            f"{r.engine} without speculation: a token takes {r.tpot:.2f} times as long in {b} as in {a} ({r.points} "
            f"points); scatter of repeats: {scatter[0]} in {a}, {scatter[1]} in {b}."
        )
    if lines and pd.notna(start):
        lines.append(f"Servers took {start:.2f} times as long to start in {b} as in {a}.")
    return "\n".join(lines)


def machine_table(found: list[Side]) -> pd.DataFrame:
    """What each machine was, what it measured, and how well its speed-ups are forecast (median error, worst).

    By its own cells of the other concurrencies; before new points were measured, by the latest model that was scored;
    and by this report's cells alone, accept lengths known.
    """
    columns = [
        "runs",
        "machine",
        "cells",
        "void",
        "own, each C kept out",
        "new points, forecast before",
        "from this report",
    ]
    rows = []
    for side in found:
        good = len(results.ok(side.cells))
        own = _errors_text(kept_out.scored(kept_out.of_engines(side.points, (kept_out.CONCURRENCY,))))
        before = _forecast_before(side)
        other = _errors_text(_forecast_from(found[0], side)) if side is not found[0] else ""
        words = machines.description(side.runs, side.profile)
        rows.append([side.name, words, good, len(side.cells) - good, own, before, other])
    return pd.DataFrame(rows, columns=columns)


def _forecast_before(side: Side) -> str:
    """Scores of forecasts of points that the model had not seen, its sweeps among them."""
    new = forecasts.of_new_points(side.runs, side.profile, sweeps.profile_of(side.profile))
    new = forecasts.of_latest_form(new)
    return f"{_errors_text(new)} ({len(new)} points)" if len(new) else format.NOT_MEASURED


def _forecast_from(first: Side, other: Side) -> pd.DataFrame:
    """Speed-ups there by the models of the cells here: kept_out.scored."""
    return kept_out.scored(kept_out.of_other_runs(other.points, first.points))


def _errors_text(scores: pd.DataFrame) -> str:
    median, worst = crossover.errors(scores)
    return format.NOT_MEASURED if pd.isna(median) else f"{median:.1%}, {worst:.0%}"


def machine_paragraphs(found: list[Side]) -> str:
    """A paragraph an other machine: how many ratios agree, and how fast and steady it was."""
    if len(found) < 2:
        return f"{NOTHING}."
    parts = []
    for other in found[1:]:
        agreed = agreement_sentence(compare_runs.pairs(found[0].costs, other.costs))
        homes = (results.home(side.runs, side.profile) for side in (found[0], other))
        speed = machines.speeds(found[0].cells, other.cells)
        lines = machines_sentence(speed, machines.startup_ratio(*homes), found[0].name, other.name)
        parts.append(f"**{other.name}: {agreed}** " + lines.replace("\n", " "))
    return "\n\n".join(parts)


def front_page_sentence(found: list[Side]) -> str:
    """The short form for the first page."""
    if len(found) < 2:
        return f"{NOTHING}."
    parts = []
    for other in found[1:]:
        outcomes = compare_runs.pairs(found[0].costs, other.costs)["outcome"]
        parts.append(f"{(outcomes == compare_runs.AGREE).sum()} of {len(outcomes)} ratios agree with {other.name}")
    return f"Set beside other runs of the same profile, {'; '.join(parts)}."


def ratios_table(found: list[Side], differing: bool = False) -> pd.DataFrame:
    """Every ratio of this report beside each other set of runs, those that differ first; or those alone."""
    parts = []
    for other in found[1:]:
        pairs = compare_runs.pairs(found[0].costs, other.costs)
        pairs = pairs.sort_values("outcome", key=lambda o: o != compare_runs.DIFFER, kind="stable")
        pairs = pairs[pairs["outcome"] == compare_runs.DIFFER] if differing else pairs
        parts.append(pairs_table(pairs, HERE, "there").assign(runs=other.name))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["runs"])


def uses_table(found: list[Side]) -> pd.DataFrame:
    """What each set of runs says to serve for each use and workload, what is not clearly behind it, and whether it
    agrees with this report: the choice of each is not clearly behind in the other.
    """
    columns = ["use", "workload", "runs", "serve", "C", "tok/s", "not clearly behind", "agrees"]
    first: dict[tuple[str, str], dict] = {}
    rows = []
    for side in found if len(found) > 1 else ():
        for answer in decide.of(side.runs, side.profile)["answers"]:
            if answer["serve"] is None:
                continue
            here = first.setdefault((answer["use"], answer["workload"]), answer)
            agrees = "" if here is answer else "yes" if _agree(here, answer) else "no"
            others = [c["configuration"] for c in answer["among"] if c["configuration"] != answer["serve"]]
            names = [USES[answer["use"]].title, answer["workload"], side.name, answer["serve"]]
            figures = [answer["concurrency"], format.number(answer["value"], 1), ", ".join(others) or "-", agrees]
            rows.append(names + figures)
    order = [use.title for use in USES.values()]
    return pd.DataFrame(rows, columns=columns).sort_values(
        ["use", "workload"], key=lambda c: c.map(order.index) if c.name == "use" else c, kind="stable"
    )


def _agree(a: dict, b: dict) -> bool:
    """Whether the choice of each answer is not clearly behind in the other."""
    names = [{c["configuration"] for c in answer["among"]} for answer in (a, b)]
    return a["serve"] in names[1] and b["serve"] in names[0]
