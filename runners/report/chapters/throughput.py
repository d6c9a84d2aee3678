"""Chapter Comparison: tables of measured and reported speeds, what the gates saw, sentences and glue values."""

import pandas as pd

from runners.analyse import intervals, results, summarise
from runners.core import format
from runners.core.format import interval_text, listed, number, percent
from runners.report.glue_values import MISSING, at, between, point_keys, span_text, triple


def _best(summary: pd.DataFrame, metric: str):
    rows = summary[(summary.workload == "all") & summary[metric].notna()]
    return rows.sort_values(metric, ascending=False, kind="stable").iloc[0] if len(rows) else None


def quoted(profile, cells, requests, statuses, summary, costs, case) -> dict[str, str]:
    """Keys of the comparison notebook; `summary` and `costs` with the pooled workload."""
    good = results.ok(cells)
    points = results.points(profile, cells)
    single = summary[(summary.workload != "all") & (summary.n_repeats > 0)]
    fewest = int(single.n_repeats.min()) if len(single) else 0
    held = intervals.coverage(fewest) if fewest >= summarise.MIN_REPEATS else float("nan")
    out = {
        "comparison_profile": profile,
        "configurations_planned": str(len(statuses)),
        "configurations_measured": str(int((statuses.status != MISSING).sum())),
        "configurations_not_measured": listed(statuses[statuses.status == MISSING].configuration),
        "cells_ok": f"{len(good):,}",
        "cells_void": f"{len(cells) - len(good):,}",
        "requests_total": number(good.requests.sum(), 0),
        "output_tokens_total": number(good.output_tokens.sum(), 0),
        "workloads": listed(dict.fromkeys(w for w, _ in points if w != "all")),
        "concurrencies": listed(dict.fromkeys(c for _, c in points)),
        "repeats": span_text(single.n_repeats),
        "interval_unit": " or ".join(sorted(set(single.unit) - {intervals.NOTHING})) or MISSING,
        "interval_level": percent(intervals.LEVEL, 0),
        "interval_coverage": percent(held, 0) if pd.notna(held) else MISSING,
    }
    peak, stream = _best(summary, "throughput"), _best(summary[summary.concurrency == 1], "stream")
    for key, row, metric in (("peak_throughput", peak, "throughput"), ("fastest_stream", stream, "stream")):
        known = row is not None
        out[key] = number(row[metric], 1) if known else MISSING
        out[f"{key}_interval"] = between(row[f"{metric}_lo"], row[f"{metric}_hi"]) if known else MISSING
        out[f"{key}_configuration"] = row.configuration if known else MISSING
    out["peak_throughput_concurrency"] = str(peak.concurrency) if peak is not None else MISSING
    out |= _reported_ratios(case)
    for name, workload, concurrency, key in point_keys(statuses, points, speculative=False):
        row = at(summary, name, workload, concurrency)
        for short, metric in (("throughput",) * 2, ("stream",) * 2, ("ttft", "ttft_ms"), ("tpot", "tpot_ms")):
            out[f"{short}_{key}"] = triple(row, metric, 1)
    for name, workload, concurrency, key in point_keys(statuses, points, speculative=True):
        out[f"ratio_{key}"] = triple(at(costs, name, workload, concurrency), "speed_up")
    return out


def _reported_ratios(case: pd.DataFrame) -> dict[str, str]:
    out = {}
    for row in case.itertuples():
        out[f"reported_single_{format.slug(row.configuration)}"] = number(row.single_stream_tok_s, 1)
        out[f"reported_c128_{format.slug(row.configuration)}"] = number(row.c128_tok_s, 0)
    bases = case[case.accept_length.isna()].set_index("engine")
    pairs = {
        "reported_sglang_over_vllm_c128": ("sglang", "vllm", "c128_tok_s"),
        "reported_vllm_over_sglang_c1": ("vllm", "sglang", "single_stream_tok_s"),
    }
    for key, (over, under, column) in pairs.items():
        ratio = bases.loc[over, column] / bases.loc[under, column]
        out |= {key: number(ratio), f"{key}_percent": percent(ratio - 1, 0)}
    return out


def table(summary: pd.DataFrame, workload: str) -> pd.DataFrame:
    """`summarise` for reading, one workload; a point that has only void cells says "void"."""
    rows = summary[summary.workload == workload]
    shown = {"configuration": rows.configuration, "C": rows.concurrency}
    titles = {
        "throughput": "output tok/s, all",
        "stream": "tok/s per stream",
        "ttft_ms": "TTFT, ms",
        "tpot_ms": "TPOT, ms",
    }
    for metric, title in titles.items():
        triples = rows[[metric, f"{metric}_lo", f"{metric}_hi"]].itertuples(index=False)
        shown[title] = ["void" if pd.isna(t[0]) else interval_text(*t, 1) for t in triples]
    return pd.DataFrame(shown | {"repeats": rows.n_repeats, "void": rows.n_void}).reset_index(drop=True)


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


def reported_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The reported figures for reading, as they were printed."""
    share = [f"{v:.0%}" if pd.notna(v) else "-" for v in frame.accept_rate_as_printed]
    return pd.DataFrame(
        {
            "configuration (reported)": frame.configuration,
            "single stream, tok/s": [f"{v:,.1f}" for v in frame.single_stream_tok_s],
            "C=128, tok/s": [f"{v:,.0f}" for v in frame.c128_tok_s],
            "accept rate as printed": share,
            "accept length": [f"{v:.2f}" if pd.notna(v) else "-" for v in frame.accept_length],
            "draft tokens D": [f"{v:.0f}" if pd.notna(v) else "-" for v in frame.num_draft_tokens],
            "notes": frame.notes.fillna(""),
        }
    )


def measured_sentence(quoted: dict[str, str]) -> str:
    """How much was measured."""
    return (
        f"{quoted['configurations_measured']} of {quoted['configurations_planned']} configurations "
        "were measured: "
        f"{quoted['cells_ok']} cells count and {quoted['cells_void']} are void. The cells that count hold "
        f"{quoted['requests_total']} requests with {quoted['output_tokens_total']} output tokens "
        f"(workloads: {quoted['workloads']}; C: {quoted['concurrencies']})."
    )


def reported_engines_sentence(quoted: dict[str, str]) -> str:
    """The engine-against-engine ratios of the reported table."""
    return (
        "From these figures SGLang without speculation is "
        f"{quoted['reported_sglang_over_vllm_c128_percent']} ahead of vLLM at C=128, and vLLM "
        f"{quoted['reported_vllm_over_sglang_c1_percent']} ahead of SGLang on a single stream."
    )


def intervals_sentence(quoted: dict[str, str]) -> str:
    """What was resampled."""
    if quoted["interval_unit"] == format.NOT_MEASURED:
        return f"Intervals: {format.NOT_MEASURED}."
    return (
        f"Resampled here: **{quoted['interval_unit']}**, at a level of {quoted['interval_level']}. "
        f"Repeats a point: {quoted['repeats']}."
    )


def absent_sentence(statuses: pd.DataFrame) -> str:
    """Which configurations were not measured, with the reasons."""
    rows = statuses[statuses.status == format.NOT_MEASURED]
    if rows.empty:
        return "Every configuration of the profile was measured."
    told = "; ".join(f"`{r.configuration}` ({r.reason.rstrip('.')})" for r in rows.itertuples())
    return f"{format.NOT_MEASURED.capitalize()}: {told}."


def voids(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells that failed a gate, with the reason and the raw value that must not be used."""
    rows = frame[frame.status != "ok"]
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
