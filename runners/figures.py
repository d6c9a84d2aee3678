"""The figures that prose may quote: every glue key of the analysis notebooks, as finished text.

Text and not numbers, so that a chapter still builds where something was not measured: the value then says so.
The keys that chapters use exist for every profile; those with a configuration's name only where there is such
a one.
"""

from collections.abc import Iterator

import pandas as pd

from runners import acceptance, breakeven, intervals, sentences, statistics, tables, verdict
from runners.acceptance_tables import number, percent
from runners.sentences import listed

MISSING = tables.NOT_MEASURED


def _between(lo: float, hi: float, decimals: int = 1) -> str:
    return MISSING if pd.isna(lo) else f"{lo:,.{decimals}f} to {hi:,.{decimals}f}"


def _range(values: pd.Series) -> str:
    if values.empty:
        return MISSING
    lo, hi = int(values.min()), int(values.max())
    return str(lo) if lo == hi else f"{lo} to {hi}"


def _triple(row, name: str, decimals: int = 2) -> str:
    return MISSING if row is None else intervals.written(row[name], row[f"{name}_lo"], row[f"{name}_hi"], decimals)


def _at(frame: pd.DataFrame, configuration: str, workload: str, concurrency: int):
    rows = frame[
        (frame.configuration == configuration) & (frame.workload == workload) & (frame.concurrency == concurrency)
    ]
    return rows.iloc[0] if len(rows) else None


def _points(statuses: pd.DataFrame, points, speculative: bool) -> Iterator[tuple[str, str, int, str]]:
    """(configuration, workload, concurrency, key suffix) for every point of every configuration."""
    rows = statuses[statuses.method != "none"] if speculative else statuses
    for name in rows.configuration:
        for workload, concurrency in points:
            yield name, workload, concurrency, f"{tables.slug(name)}_{tables.slug(workload)}_c{concurrency}"


def _best(summary: pd.DataFrame, metric: str):
    rows = summary[(summary.workload == "all") & summary[metric].notna()]
    return rows.sort_values(metric, ascending=False, kind="stable").iloc[0] if len(rows) else None


def comparison(profile, cells, requests, statuses, summary, costs, case) -> dict[str, str]:
    """Keys of the comparison notebook; `summary` and `costs` with the pooled workload."""
    good = tables.ok(cells)
    points = tables.points(profile, cells)
    single = summary[(summary.workload != "all") & (summary.n_repeats > 0)]
    fewest = int(single.n_repeats.min()) if len(single) else 0
    held = intervals.coverage(fewest) if fewest >= statistics.MIN_REPEATS else float("nan")
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
        "repeats": _range(single.n_repeats),
        "interval_unit": " or ".join(sorted(set(single.unit) - {intervals.NOTHING})) or MISSING,
        "interval_level": percent(intervals.LEVEL, 0),
        "interval_coverage": percent(held, 0) if pd.notna(held) else MISSING,
    }
    peak, stream = _best(summary, "throughput"), _best(summary[summary.concurrency == 1], "stream")
    for key, row, metric in (("peak_throughput", peak, "throughput"), ("fastest_stream", stream, "stream")):
        known = row is not None
        out[key] = number(row[metric], 1) if known else MISSING
        out[f"{key}_interval"] = _between(row[f"{metric}_lo"], row[f"{metric}_hi"]) if known else MISSING
        out[f"{key}_configuration"] = row.configuration if known else MISSING
    out["peak_throughput_concurrency"] = str(peak.concurrency) if peak is not None else MISSING
    out |= _reported_ratios(case)
    for name, workload, concurrency, key in _points(statuses, points, speculative=False):
        row = _at(summary, name, workload, concurrency)
        for short, metric in (("throughput",) * 2, ("stream",) * 2, ("ttft", "ttft_ms"), ("tpot", "tpot_ms")):
            out[f"{short}_{key}"] = _triple(row, metric, 1)
    for name, workload, concurrency, key in _points(statuses, points, speculative=True):
        out[f"ratio_{key}"] = _triple(_at(costs, name, workload, concurrency), "speed_up")
    return out


def _reported_ratios(case: pd.DataFrame) -> dict[str, str]:
    out = {}
    for row in case.itertuples():
        out[f"reported_single_{tables.slug(row.configuration)}"] = number(row.single_stream_tok_s, 1)
        out[f"reported_c128_{tables.slug(row.configuration)}"] = number(row.c128_tok_s, 0)
    bases = case[case.accept_length.isna()].set_index("engine")
    pairs = {
        "reported_sglang_over_vllm_c128": ("sglang", "vllm", "c128_tok_s"),
        "reported_vllm_over_sglang_c1": ("vllm", "sglang", "single_stream_tok_s"),
    }
    for key, (over, under, column) in pairs.items():
        ratio = bases.loc[over, column] / bases.loc[under, column]
        out |= {key: number(ratio), f"{key}_percent": percent(ratio - 1, 0)}
    return out


def acceptances(cells: pd.DataFrame, case: pd.DataFrame, statuses: pd.DataFrame) -> dict[str, str]:
    """Keys of the acceptance notebook."""
    d = case.num_draft_tokens.max()
    out = {
        "floor_draft_tokens": number(d, 0),
        "floor_accept_length": number(acceptance.accept_length(1, 0)),
        "floor_rate_old": percent(acceptance.sglang_rate_old(1.0, d), 0),
        "floor_rate_new": percent(acceptance.sglang_rate_new(1.0, d), 0),
    }
    for row in case[case.accept_length.notna()].itertuples():
        name, al, width = tables.slug(row.configuration), row.accept_length, row.num_draft_tokens
        out |= {
            f"reported_accept_length_{name}": number(al),
            f"reported_rate_printed_{name}": percent(row.accept_rate_as_printed, 0),
            f"reported_rate_old_{name}": percent(acceptance.sglang_rate_old(al, width), 0),
            f"reported_rate_new_{name}": percent(acceptance.sglang_rate_new(al, width), 0),
            f"reported_accepted_per_step_{name}": number(al - 1),
        }
    return out | _control(cells) | _ngram(cells) | _each_acceptance(cells, statuses)


def _control(cells: pd.DataFrame) -> dict[str, str]:
    floor = acceptance.control(cells)
    steps, drafted, accepted = (floor[c].sum() for c in ("steps", "drafted", "accepted"))
    al, width = acceptance.accept_length(steps, accepted), floor.k.max() + 1
    texts = {
        "steps": number(steps, 0),
        "drafted": number(drafted, 0),
        "accepted": number(accepted, 0),
        "accept_length": number(al),
        "rate_old": percent(acceptance.sglang_rate_old(al, width), 0),
        "rate_new": percent(acceptance.sglang_rate_new(al, width), 0),
    }
    known = {f"control_{k}": text if len(floor) else MISSING for k, text in texts.items()}
    return {"control_configurations": listed(floor.configuration)} | known


def _ngram(cells: pd.DataFrame) -> dict[str, str]:
    pool = acceptance.pooled(cells)
    rows = pool[pool.method == "ngram"].sort_values("tokens_per_step", ascending=False, kind="stable")
    writers = {"configuration": str, "workload": str, "tokens_per_step": number}
    writers |= {"accept_length": number, "drafted_share": lambda v: percent(v, 0)}
    return {f"ngram_best_{k}": f(rows.iloc[0][k]) if len(rows) else MISSING for k, f in writers.items()}


def _each_acceptance(cells: pd.DataFrame, statuses: pd.DataFrame) -> dict[str, str]:
    rows = acceptance.pooled(cells, by=()).set_index("configuration")
    columns = {"accept_length": number, "tokens_per_step": number, "draft_acceptance": percent}
    columns |= {"sglang_old": percent, "sglang_new": percent}
    columns |= {c: lambda v: number(v, 0) for c in ("steps", "drafted", "accepted")}
    named = {"sglang_old": "rate_old", "sglang_new": "rate_new"}
    out = {}
    for name in statuses[statuses.method != "none"].configuration:
        row = rows.loc[name] if name in rows.index else None
        for column, text in columns.items():
            value = MISSING if row is None else text(row[column])
            out[f"{named.get(column, column)}_{tables.slug(name)}"] = value
        first = row.survival[0] if row is not None and row.survival else float("nan")
        out[f"first_position_{tables.slug(name)}"] = percent(first) if pd.notna(first) else MISSING
    return out


def verdicts(found: dict, cells: pd.DataFrame, statuses: pd.DataFrame, case: pd.DataFrame) -> dict[str, str]:
    """Keys of the verdict notebook, from `verdict.decide`."""
    out = {"verdict_sentence": sentences.verdict(found), "pays_sentence": sentences.pays(found)}
    out["serve_configuration"] = found["serve"] or MISSING
    for short, use in (("single", "single_stream"), ("throughput", "throughput")):
        best = found["uses"][use] or {}
        second = best.get("runner_up") or {}
        known = bool(best) and best["lo"] is not None
        out |= {
            f"{short}_configuration": best.get("configuration", MISSING),
            f"{short}_concurrency": str(best.get("concurrency", MISSING)),
            f"{short}_value": number(best["value"], 1) if best else MISSING,
            f"{short}_interval": _between(best["lo"], best["hi"]) if known else MISSING,
            f"{short}_runner_up": second.get("configuration", MISSING),
            f"{short}_runner_up_concurrency": str(second.get("concurrency", MISSING)),
            f"{short}_ratio": verdict.figure(best.get("ratio")),
            f"{short}_clear": {True: "yes", False: "no", None: MISSING}[best.get("clear")],
        }
    points = pd.DataFrame(found["points"], columns=breakeven.COLUMNS + ["pays"])
    single = points[(points.workload != "all") & points.speed_up.notna()]
    out["pays_total"] = str(len(single))
    answers = {"yes": verdict.YES, "no": verdict.NO, "none": verdict.NONE, "undecided": verdict.UNDECIDED}
    out |= {f"pays_{key}": str(int((single.pays == answer).sum())) for key, answer in answers.items()}
    pool = points[(points.workload == "all") & points.speed_up.notna()].sort_values("speed_up", kind="stable")
    worst = pool.iloc[0] if len(pool) else None
    out["loses_most_configuration"] = MISSING if worst is None else worst.configuration
    out["loses_most_concurrency"] = MISSING if worst is None else str(worst.concurrency)
    out["loses_most_speed_up"] = _triple(worst, "speed_up")
    ranked = single.sort_values("speed_up", ascending=False, kind="stable")
    most = ranked.iloc[0] if len(ranked) else None
    for column in ("configuration", "workload", "concurrency"):
        out[f"gains_most_{column}"] = MISSING if most is None else str(most[column])
    out["gains_most_speed_up"] = _triple(most, "speed_up")
    for key, value in (("min", single.step_cost.min()), ("max", single.step_cost.max())):
        out[f"step_cost_{key}"] = number(value) if pd.notna(value) else MISSING
    for row in breakeven.reported(case).itertuples():
        # One decimal where the two sides served different batches: more would pretend to precision.
        end, digits = f"c{row.concurrency}_{tables.slug(row.configuration)}", 2 if row.like_for_like else 1
        out |= {
            f"reported_r_{end}": number(row.step_cost, digits),
            f"reported_speed_up_{end}": number(row.speed_up),
            f"reported_accept_length_{tables.slug(row.configuration)}": number(row.accept_length),
        }
    for name, workload, concurrency, key in _points(statuses, tables.points(found["profile"], cells), True):
        row = _at(points, name, workload, concurrency)
        out[f"speed_up_{key}"] = _triple(row, "speed_up")
        out[f"r_{key}"] = _triple(row, "step_cost")
        length = float("nan") if row is None else row.tokens_per_step
        out[f"tokens_per_step_{key}"] = number(length) if pd.notna(length) else MISSING
        out[f"pays_{key}"] = MISSING if row is None else row.pays
    return out
