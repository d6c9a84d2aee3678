"""Chapter Verdict: the tables of a verdict, its sentences and glue values."""

import pandas as pd

from runners.analyse import reported, results, step_cost
from runners.analyse.intervals import WITHIN_RUN
from runners.analyse.multiple_comparisons import FALSE_DISCOVERIES, of_points
from runners.analyse.verdict import explain
from runners.analyse.verdict.decide import USES
from runners.analyse.verdict.explain import NO, NONE, UNDECIDED, YES
from runners.core import format
from runners.core.format import listed, number
from runners.report.glue_values import MISSING, at, between, point_keys, triple
from runners.report.markdown import pipe_table


def serve_sentence(quoted: dict[str, str]) -> str:
    """What `make serve` starts."""
    if quoted["serve_configuration"] == format.NOT_MEASURED:
        return f"What `make serve` would start: {format.NOT_MEASURED}."
    return f"`make serve` starts `{quoted['serve_configuration']}`, the throughput choice."


def reported_break_even_sentence(quoted: dict[str, str]) -> str:
    """The reported drafters against their break-even on a single stream."""
    parts = [
        f"the {name} drafter had an accept length of {quoted[f'reported_accept_length_{slug}']} "
        f"where a single stream needed {quoted[f'reported_r_c1_{slug}']}"
        for name, slug in (
            ("third-party", "sglang_eagle3_aq_medai"),
            ("own", "sglang_eagle3_own"),
        )
        if f"reported_r_c1_{slug}" in quoted
    ]
    text = ", and ".join(parts) or f"the drafters' figures: {format.NOT_MEASURED}"
    return text[0].upper() + text[1:] + "."


def verdict_sentence(found: dict) -> str:
    """The verdict in one sentence."""
    parts = []
    for use, name in (("single_stream", "For a single stream"), ("throughput", "for throughput")):
        best = found["uses"][use]
        if not best:
            parts.append(f"{name}: {format.NOT_MEASURED}")
            continue
        at = "" if use == "single_stream" else f" at C={best['concurrency']}"
        second = best["runner_up"]
        doubt = "" if best["clear"] or not second else f", not clearly ahead of {second['configuration']}"
        parts.append(f"{name} serve {best['configuration']}{at} ({best['value']:,.1f} tok/s{doubt})")
    return "; ".join(parts) + "."


def pays_sentence(found: dict) -> str:
    """At how many points speculation pays, and with which configurations."""
    points = [p for p in found["points"] if p["workload"] != "all" and p["speed_up"] is not None]
    if not points:
        return f"Whether speculation pays: {format.NOT_MEASURED}."
    count = {a: sum(p["pays"] == a for p in points) for a in (YES, NO)}
    where = listed(dict.fromkeys(p["configuration"] for p in points if p["pays"] == YES))
    gains = f"pays at {count[YES]}" + (f" ({where})" if count[YES] else "")
    rest = len(points) - count[YES] - count[NO]
    tail = f"loses at {count[NO]} and makes no clear difference at {rest}"
    note = " One run a point: these intervals hold no run-to-run variation." if found["unit"] == WITHIN_RUN else ""
    return f"Of {len(points)} measured points speculation {gains}, {tail}.{note}"


def reported_best_sentence(case: pd.DataFrame) -> str:
    """The case's own choice: the fastest reported row on a single stream and at C=128."""
    single = case.loc[case.single_stream_tok_s.idxmax()]
    many = case.loc[case.c128_tok_s.idxmax()]
    return (
        f"In the reported figures `{single.configuration}` has the fastest single stream "
        f"({single.single_stream_tok_s:,.1f} tok/s) and `{many.configuration}` the highest throughput "
        f"at C=128 ({many.c128_tok_s:,.0f} tok/s)."
    )


def quoted(found: dict, cells: pd.DataFrame, statuses: pd.DataFrame, case: pd.DataFrame) -> dict[str, str]:
    """Keys of the verdict notebook, from `verdict.decide`."""
    out = {"verdict_sentence": verdict_sentence(found), "pays_sentence": pays_sentence(found)}
    out["serve_configuration"] = found["serve"] or MISSING
    for short, use in (("single", "single_stream"), ("throughput", "throughput")):
        best = found["uses"][use] or {}
        second = best.get("runner_up") or {}
        known = bool(best) and best["lo"] is not None
        out |= {
            f"{short}_configuration": best.get("configuration", MISSING),
            f"{short}_concurrency": str(best.get("concurrency", MISSING)),
            f"{short}_value": number(best["value"], 1) if best else MISSING,
            f"{short}_interval": between(best["lo"], best["hi"]) if known else MISSING,
            f"{short}_runner_up": second.get("configuration", MISSING),
            f"{short}_runner_up_concurrency": str(second.get("concurrency", MISSING)),
            f"{short}_ratio": figure(best.get("ratio")),
            f"{short}_clear": {True: "yes", False: "no", None: MISSING}[best.get("clear")],
        }
    points = pd.DataFrame(found["points"], columns=step_cost.COLUMNS + ["pays"])
    single = points[(points.workload != "all") & points.speed_up.notna()]
    out["pays_total"] = str(len(single))
    answers = {"yes": explain.YES, "no": explain.NO, "none": explain.NONE, "undecided": explain.UNDECIDED}
    out |= {f"pays_{key}": str(int((single.pays == answer).sum())) for key, answer in answers.items()}
    pool = points[(points.workload == "all") & points.speed_up.notna()].sort_values("speed_up", kind="stable")
    worst = pool.iloc[0] if len(pool) else None
    out["loses_most_configuration"] = MISSING if worst is None else worst.configuration
    out["loses_most_concurrency"] = MISSING if worst is None else str(worst.concurrency)
    out["loses_most_speed_up"] = triple(worst, "speed_up")
    ranked = single.sort_values("speed_up", ascending=False, kind="stable")
    most = ranked.iloc[0] if len(ranked) else None
    for column in ("configuration", "workload", "concurrency"):
        out[f"gains_most_{column}"] = MISSING if most is None else str(most[column])
    out["gains_most_speed_up"] = triple(most, "speed_up")
    for key, value in (("min", single.step_cost.min()), ("max", single.step_cost.max())):
        out[f"step_cost_{key}"] = number(value) if pd.notna(value) else MISSING
    for row in reported.step_costs(case).itertuples():
        # One decimal where the two sides served different batches: more would pretend to precision.
        end, digits = f"c{row.concurrency}_{format.slug(row.configuration)}", 2 if row.like_for_like else 1
        out |= {
            f"reported_r_{end}": number(row.step_cost, digits),
            f"reported_speed_up_{end}": number(row.speed_up),
            f"reported_accept_length_{format.slug(row.configuration)}": number(row.accept_length),
        }
    for name, workload, concurrency, key in point_keys(statuses, results.points(found["profile"], cells), True):
        row = at(points, name, workload, concurrency)
        out[f"speed_up_{key}"] = triple(row, "speed_up")
        out[f"r_{key}"] = triple(row, "step_cost")
        length = float("nan") if row is None else row.tokens_per_step
        out[f"tokens_per_step_{key}"] = number(length) if pd.notna(length) else MISSING
        out[f"pays_{key}"] = MISSING if row is None else row.pays
    return out


def false_discovery_sentence(points: pd.DataFrame) -> str:
    """How many of a verdict's answers hold when all of them are corrected together."""
    single = points[points["workload"] != "all"] if len(points) else points
    if single.empty:
        return f"Comparisons: {format.NOT_MEASURED}."
    found = of_points(single)
    if not found["p"].notna().any():
        return f"{len(single)} points are compared; none is tested, since a point has too few repeats."
    decided = found[found["pays"].isin(("yes", "no")) & found["p"].notna()]
    by_chance = FALSE_DISCOVERIES * found["p"].notna().sum()
    return (
        f"{len(single)} points are compared; at 95% each, about {by_chance:.0f} would differ by chance alone. Of "
        f"{len(decided)} answers yes or no, {int(decided['holds'].sum())} hold with the false discovery rate kept at "
        f"{FALSE_DISCOVERIES:.0%} over all of them (Benjamini-Hochberg)."
    )


def figure(triple: list | None, decimals: int = 2) -> str:
    """[point, lo, hi] of a verdict as text; null means not measured."""
    values = [float("nan") if v is None else v for v in triple or [None] * 3]
    return format.interval_text(*values, decimals)


def table(verdict: dict) -> pd.DataFrame:
    """What to serve for each use, overall and by workload: for the terminal, the README and the notebook."""
    rows = [{"use": u, "workload": "all", **(found or {})} for u, found in verdict["uses"].items()]
    rows += verdict["by_workload"]
    shown = []
    for row in sorted(rows, key=lambda r: list(USES).index(r["use"])):
        best, second = row.get("configuration"), row.get("runner_up") or {}
        shown.append(
            {
                "use": USES[row["use"]][0],
                "workload": row["workload"],
                "serve": best or ("none meets the limits" if row["use"] == "goodput" else format.NOT_MEASURED),
                "C": str(row["concurrency"]) if best else "-",
                "tok/s": figure([row["value"], row["lo"], row["hi"]], 1) if best else "-",
                "runner-up": f"{second['configuration']} (C={second['concurrency']})" if second else "-",
                "best / runner-up": figure(row["ratio"]) if second else "-",
                "clear": {True: "yes", False: "no", None: "-"}[row.get("clear")],
            }
        )
    return pd.DataFrame(shown)


def points_table(verdict: dict, workload: str | None = None) -> pd.DataFrame:
    """Does speculation pay, point by point: speed-up over the engine's base, answer, cause."""
    rows = [p for p in verdict["points"] if workload is None or p["workload"] == workload]
    return pd.DataFrame(
        [
            {
                "configuration": p["configuration"],
                "workload": p["workload"],
                "C": p["concurrency"],
                "throughput / base": figure([p["speed_up"], p["speed_up_lo"], p["speed_up_hi"]]),
                "pays": p["pays"],
                "because": p["cause"],
            }
            for p in rows
        ],
        columns=["configuration", "workload", "C", "throughput / base", "pays", "because"],
    )


def flip_table(verdict: dict) -> pd.DataFrame:
    """What would turn each answer, for the pool of workloads."""
    rows = [p for p in verdict["points"] if p["workload"] == "all"]
    return pd.DataFrame(
        [
            {
                "configuration": p["configuration"],
                "C": p["concurrency"],
                "pays": p["pays"],
                "it takes": p["flip"],
            }
            for p in rows
        ],
        columns=["configuration", "C", "pays", "it takes"],
    )


def pays_table(verdict: dict) -> pd.DataFrame:
    """One row a speculative configuration: at how many of its (workload, C) points each answer holds."""
    points = pd.DataFrame(verdict["points"], columns=["configuration", "workload", "concurrency", "pays"])
    points = points[points.workload != "all"]
    rows = []
    for name, group in points.groupby("configuration", sort=False):
        counts = group.pays.value_counts()
        rows.append(
            {
                "configuration": name,
                **{answer: int(counts.get(answer, 0)) for answer in (YES, NO, NONE, UNDECIDED)},
            }
        )
    return pd.DataFrame(rows, columns=["configuration", YES, NO, NONE, UNDECIDED])


def markdown(verdict: dict) -> str:
    """The verdict for a README: best per use, then whether speculation pays, then what is missing."""
    overall = table(verdict)
    text = pipe_table(overall[overall.workload == "all"].drop(columns="workload"))
    if verdict.get("simulated"):
        text = f"**{format.SIMULATED}**\n\n{text}"
    counts = pays_table(verdict)
    if len(counts):
        text += "\n\nPoints (workload, C) at which speculation pays over the same engine without it:\n\n"
        text += pipe_table(counts)
    for row in verdict["not_measured"]:
        text += f"\n\n`{row['configuration']}`: {format.NOT_MEASURED} ({row['reason']})."
    return text + "\n"
