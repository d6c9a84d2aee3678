"""Chapter Comparison: what each configuration delivers, measured and reported, and what the gates saw."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import inference, reported, results, step_cost, summarise
from runners.core.format import NOT_MEASURED, interval_text, listed, number, percent
from runners.report import markdown
from runners.report.columns import interval_column


@dataclass(frozen=True)
class Data:
    """What the chapter shows: the raw cells and requests, and what `analyse` derives from them."""

    profile: str
    folder: Path  # of the profile's runs: <configuration>/cells.jsonl, <configuration>/requests.parquet
    cells: pd.DataFrame
    requests: pd.DataFrame
    statuses: pd.DataFrame
    summary: pd.DataFrame  # summarise.summarise, with the pool of workloads
    costs: pd.DataFrame  # step_cost.step_costs
    case: pd.DataFrame  # reported, not measured

    @property
    def workloads(self) -> list[str]:
        """The measured workloads, then "all", their pool; empty without a cell."""
        found = sorted(set(self.cells.workload))
        return [*found, "all"] if found else []

    @property
    def points(self) -> pd.DataFrame:
        """`summary` without the pool of workloads."""
        return self.summary[self.summary.workload != "all"]


def load(runs: str | Path, profile: str) -> Data:
    """Read a profile's runs and derive the chapter's figures; frames are empty where nothing was measured."""
    cells, requests = results.cells(runs, profile), results.requests(runs, profile)
    return Data(
        profile,
        results.home(runs, profile),
        cells,
        requests,
        results.statuses(runs, profile),
        summarise.summarise(cells, with_pooled=True),
        step_cost.step_costs(cells, requests),
        reported.case(),
    )


def glue_values(data: Data) -> dict[str, str]:
    """The figures that pages of the book quote from this chapter."""
    measured = data.points[data.points.n_repeats > 0]
    return {
        "measured_sentence": measured_sentence(data),
        "repeats": _range_text(measured.n_repeats),
        "interval_unit": " or ".join(sorted(set(data.costs.unit) - {inference.NOTHING})) or NOT_MEASURED,
        "interval_level": percent(inference.LEVEL, 0),
    }


def _range_text(counts: pd.Series) -> str:
    if counts.empty:
        return NOT_MEASURED
    lo, hi = int(counts.min()), int(counts.max())
    return str(lo) if lo == hi else f"{lo} to {hi}"


def measured_sentence(data: Data) -> str:
    """How much was measured."""
    good, points = results.ok(data.cells), results.points(data.profile, data.cells)
    void = int((data.cells["status"] != "ok").sum())
    measured = int((data.statuses["status"] != NOT_MEASURED).sum())
    workloads = listed(dict.fromkeys(w for w, _ in points if w != "all"))
    concurrencies = listed(dict.fromkeys(c for _, c in points))
    return (
        f"{measured} of {len(data.statuses)} configurations were measured: {len(good):,} cells count and {void:,} are "
        f"void. The cells that count hold {number(good.requests.sum(), 0)} requests with "
        f"{number(good.output_tokens.sum(), 0)} output tokens "
        f"(workloads: {workloads}; C: {concurrencies})."
    )


def not_measured_sentence(statuses: pd.DataFrame) -> str:
    """Which configurations were not measured, with the reasons; these may quote an engine, so they are escaped."""
    rows = statuses[statuses.status == NOT_MEASURED]
    if rows.empty:
        return "Every configuration of the profile was measured."
    reasons = "; ".join(f"`{r.configuration}` ({markdown.escaped(r.reason.rstrip('.'))})" for r in rows.itertuples())
    return f"{NOT_MEASURED.capitalize()}: {reasons}."


def reported_engines_sentence(case: pd.DataFrame) -> str:
    """The engine-against-engine ratios of the reported table, both without speculation."""
    bases = case[case.accept_length.isna()].set_index("engine")
    many = bases.c128_tok_s["sglang"] / bases.c128_tok_s["vllm"]
    single = bases.single_stream_tok_s["vllm"] / bases.single_stream_tok_s["sglang"]
    return (
        f"From these figures SGLang without speculation is {percent(many - 1, 0)} ahead of vLLM at C=128, and vLLM "
        f"{percent(single - 1, 0)} ahead of SGLang on a single stream."
    )


def intervals_sentence(data: Data) -> str:
    """What the intervals of ratios are over."""
    values = glue_values(data)
    if values["interval_unit"] == NOT_MEASURED:
        return f"Intervals: {NOT_MEASURED}."
    return (
        f"Intervals of ratios are over **{values['interval_unit']}**, at {values['interval_level']} or more. "
        f"Blocks a point: {values['repeats']}."
    )


def point_table(summary: pd.DataFrame, workload: str) -> pd.DataFrame:
    """`summarise` for reading, one workload; a point that has only void cells says "void"."""
    rows = summary[summary.workload == workload]
    columns = {"configuration": rows.configuration, "C": rows.concurrency}
    titles = {
        "throughput": "output tok/s, all",
        "stream": "tok/s per stream",
        "ttft_ms": "TTFT, ms",
        "tpot_ms": "TPOT, ms",
    }
    for metric, title in titles.items():
        triples = rows[[metric, f"{metric}_lo", f"{metric}_hi"]].itertuples(index=False)
        columns[title] = ["void" if pd.isna(point) else interval_text(point, lo, hi, 1) for point, lo, hi in triples]
    return pd.DataFrame(columns | {"blocks": rows.n_repeats, "void": rows.n_void}).reset_index(drop=True)


def ratio_table(costs: pd.DataFrame) -> pd.DataFrame:
    """Output throughput and per-stream speed over the same engine's base."""
    return pd.DataFrame(
        {
            "configuration": costs.configuration,
            "workload": costs.workload,
            "C": costs.concurrency,
            "throughput / base": interval_column(costs, "speed_up"),
            "stream speed / base": interval_column(costs, "stream_speed_up"),
            "paired": ["yes" if p else "no" for p in costs.paired],
            "blocks": costs.n_repeats,
            "void": costs.n_void,
        }
    )


def gates_table(cells: pd.DataFrame) -> pd.DataFrame:
    """What the gates looked at, per configuration over its ok cells: a mean, or the worst value."""
    looked = {
        "equal_prefix_share": ("equal to base output", "mean", 2),
        "reference_share": ("equal to reference output", "mean", 2),
        "distinct_bigram_ratio": ("distinct bigrams (least)", "min", 2),
        "neighbour_cores": ("cores of other work (most)", "max", 2),
        "steal_share": ("CPU steal (most)", "max", 3),
        "machine_gflops": ("the machine, GFLOP/s (mean)", "mean", 0),
        "client_cpu_us_per_token": ("client CPU, us per token", "mean", 0),
    }
    rows = []
    for name, group in results.ok(cells).groupby("configuration", sort=False):
        row = {"configuration": name, "ok cells": len(group)}
        for column, (title, how, digits) in looked.items():
            value = group[column].astype(float).agg(how)
            row[title] = "-" if pd.isna(value) else f"{value:.{digits}f}"
        rows.append(row)
    return pd.DataFrame(rows, columns=["configuration", "ok cells", *(t for t, _, _ in looked.values())])


def void_table(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that failed a gate, with the reason and the raw value that must not be used."""
    rows = cells[cells.status != "ok"]
    return pd.DataFrame(
        {
            "configuration": rows.configuration,
            "workload": rows.workload,
            "C": rows.concurrency,
            "repeat": rows["repeat"],
            "attempts": rows.attempts,
            "reason": rows.reason,
            "raw tok/s": rows.output_tokens_per_second.round(1),
        }
    ).reset_index(drop=True)


def reported_table(case: pd.DataFrame) -> pd.DataFrame:
    """The reported figures as they were printed."""
    return pd.DataFrame(
        {
            "configuration (reported)": case.configuration,
            "single stream, tok/s": [number(v, 1) for v in case.single_stream_tok_s],
            "C=128, tok/s": [number(v, 0) for v in case.c128_tok_s],
            "accept rate as printed": [percent(v, 0) for v in case.accept_rate_as_printed],
            "accept length": [number(v) for v in case.accept_length],
            "num_draft_tokens": [number(v, 0) for v in case.num_draft_tokens],
            "notes": case.notes.fillna(""),
        }
    )
