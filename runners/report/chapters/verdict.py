"""Chapter Verdict: what to serve for each use, whether speculation pays, why, and what would change the answer."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import reported, results
from runners.analyse.inference import NO, NO_DIFFERENCE, NOTHING, UNDECIDED, YES
from runners.analyse.multiple_comparisons import FALSE_DISCOVERIES, of_points
from runners.analyse.verdict import decide, store
from runners.analyse.verdict.decide import USES
from runners.core.format import NOT_MEASURED, SIMULATED, listed, number, triple_text
from runners.report import examples, markdown
from runners.report.columns import interval_column

_POINT = ["configuration", "workload", "concurrency", "pays", "speed_up", "speed_up_lo", "speed_up_hi"]


@dataclass(frozen=True)
class Data:
    """What the chapter shows."""

    verdict: dict  # decide.decide, as in verdict.json
    cells: pd.DataFrame
    requests: pd.DataFrame
    statuses: pd.DataFrame
    costs: pd.DataFrame  # step_cost.step_costs, as the verdict holds them
    pairs: pd.DataFrame  # examples.beside_base
    case: pd.DataFrame  # reported, not measured


def load(runs: str | Path, profile: str, write: bool = False) -> Data:
    """Decide from a profile's runs; `write` also stores verdict.json beside them, which `make serve` reads."""
    verdict = decide.of(runs, profile)
    if write:
        store.write(runs, profile, verdict)
    cells = results.cells(runs, profile)
    return Data(
        verdict,
        cells,
        results.requests(runs, profile),
        results.statuses(runs, profile),
        decide.costs(verdict),
        examples.beside_base(cells),
        reported.case(),
    )


def glue_values(verdict: dict) -> dict[str, str]:
    """The figures that pages of the book quote from this chapter, from `decide.decide`."""
    values = {"verdict_sentence": verdict_sentence(verdict), "pays_sentence": pays_sentence(verdict)}
    values |= _use_values(verdict, "single_stream", "single") | _use_values(verdict, "throughput", "throughput")
    # The pool of workloads hides where n-gram gains; single workloads would make one unlucky point "loses most".
    points = pd.DataFrame(verdict["points"], columns=[*_POINT, "step_cost"]).dropna(subset=["speed_up"])
    single, pool = points[points.workload != "all"], points[points.workload == "all"]
    values |= {"pays_total": str(len(single))}
    answers = {"yes": YES, "no": NO, "undecided": UNDECIDED}
    values |= {f"pays_{key}": str(int((single.pays == answer).sum())) for key, answer in answers.items()}
    most = single.sort_values("speed_up", ascending=False, kind="stable").head(1)
    for name in ("configuration", "workload", "concurrency"):
        values[f"gains_most_{name}"] = _only(most[name])
    values["gains_most_speed_up"] = _only(interval_column(most, "speed_up"))
    least = pool.sort_values("speed_up", kind="stable").head(1)
    values["loses_most_configuration"] = _only(least.configuration)
    values["loses_most_speed_up"] = _only(interval_column(least, "speed_up"))
    for key, cost in (("min", single.step_cost.min()), ("max", single.step_cost.max())):
        values[f"step_cost_{key}"] = number(cost) if pd.notna(cost) else NOT_MEASURED
    return values


def _only(values) -> str:
    """The one value as text, or that there is none."""
    return next((str(v) for v in values), NOT_MEASURED)


def _use_values(verdict: dict, use: str, prefix: str) -> dict[str, str]:
    """The best configuration for a use: its name, C, figure, interval, runner-up, and whether it is clearly ahead."""
    names = ["configuration", "concurrency", "value", "interval", "runner_up", "clear"]
    best = verdict["uses"][use]
    if not best:
        texts = [NOT_MEASURED] * len(names)
    else:
        known = best["lo"] is not None
        texts = [
            best["configuration"],
            str(best["concurrency"]),
            number(best["value"], 1),
            f"{best['lo']:,.1f} to {best['hi']:,.1f}" if known else NOT_MEASURED,
            best["runner_up"]["configuration"] if best["runner_up"] else NOT_MEASURED,
            {True: "yes", False: "no", None: NOT_MEASURED}[best["clear"]],
        ]
    found = dict(zip(names, texts, strict=True))
    if use == "single_stream":
        del found["concurrency"]  # it is 1
    return {f"{prefix}_{name}": text for name, text in found.items()}


def serve_sentence(verdict: dict) -> str:
    """What `make serve` starts."""
    if not verdict["serve"]:
        return f"What `make serve` would start: {NOT_MEASURED}."
    return f"`make serve` starts `{verdict['serve']}`, the throughput choice."


def reported_break_even_sentence(case: pd.DataFrame) -> str:
    """The reported drafters against their break-even on a single stream."""
    costs = reported.step_costs(case)
    single = costs[costs.concurrency == 1].set_index("configuration")
    parts = [
        f"the {name} drafter had an accept length of {number(single.accept_length[configuration])} "
        f"where a single stream needed {number(single.step_cost[configuration])}"
        for name, configuration in (("third-party", "sglang-eagle3-aq-medai"), ("own", "sglang-eagle3-own"))
        if configuration in single.index
    ]
    text = ", and ".join(parts) or f"the drafters' figures: {NOT_MEASURED}"
    return text[0].upper() + text[1:] + "."


def verdict_sentence(verdict: dict) -> str:
    """The verdict in one sentence."""
    parts = []
    for use, name in (("single_stream", "For a single stream"), ("throughput", "for throughput")):
        best = verdict["uses"][use]
        if not best:
            parts.append(f"{name}: {NOT_MEASURED}")
            continue
        at = "" if use == "single_stream" else f" at C={best['concurrency']}"
        second = best["runner_up"]
        doubt = "" if best["clear"] or not second else f", not clearly ahead of {second['configuration']}"
        parts.append(f"{name} serve {best['configuration']}{at} ({best['value']:,.1f} tok/s{doubt})")
    return "; ".join(parts) + "."


def pays_sentence(verdict: dict) -> str:
    """At how many points speculation pays, and with which configurations."""
    points = [p for p in verdict["points"] if p["workload"] != "all" and p["speed_up"] is not None]
    if not points:
        return f"Whether speculation pays: {NOT_MEASURED}."
    count = {a: sum(p["pays"] == a for p in points) for a in (YES, NO)}
    where = listed(dict.fromkeys(p["configuration"] for p in points if p["pays"] == YES))
    gains = f"pays at {count[YES]}" + (f" ({where})" if count[YES] else "")
    rest = len(points) - count[YES] - count[NO]
    tail = f"loses at {count[NO]} and makes no clear difference at {rest}"
    note = " One start a point and no earlier campaign: nothing can be decided." if verdict["unit"] == NOTHING else ""
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


def false_discovery_sentence(points: pd.DataFrame) -> str:
    """How many of a verdict's answers hold when all of them are corrected together."""
    single = points[points["workload"] != "all"] if len(points) else points
    if single.empty:
        return f"Comparisons: {NOT_MEASURED}."
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


def uses_table(verdict: dict) -> pd.DataFrame:
    """What to serve for each use, overall and by workload: for the terminal, the README and the notebook."""
    rows = [{"use": u, "workload": "all", **(found or {})} for u, found in verdict["uses"].items()]
    rows += verdict["by_workload"]
    written = []
    for row in sorted(rows, key=lambda r: list(USES).index(r["use"])):
        best, second = row.get("configuration"), row.get("runner_up") or {}
        written.append(
            {
                "use": USES[row["use"]][0],
                "workload": row["workload"],
                "serve": best or ("none meets the limits" if row["use"] == "goodput" else NOT_MEASURED),
                "C": str(row["concurrency"]) if best else "-",
                "tok/s": triple_text([row["value"], row["lo"], row["hi"]], 1) if best else "-",
                "runner-up": f"{second['configuration']} (C={second['concurrency']})" if second else "-",
                "best / runner-up": triple_text(row["ratio"]) if second else "-",
                "clear": {True: "yes", False: "no", None: "-"}[row.get("clear")],
            }
        )
    return pd.DataFrame(written)


def points_table(verdict: dict) -> pd.DataFrame:
    """Does speculation pay, point by point: speed-up over the engine's base, answer, cause."""
    rows = []
    for p in verdict["points"]:
        ratio = triple_text([p["speed_up"], p["speed_up_lo"], p["speed_up_hi"]])
        rows.append([p["configuration"], p["workload"], p["concurrency"], ratio, p["pays"], p["cause"]])
    return pd.DataFrame(rows, columns=["configuration", "workload", "C", "throughput / base", "pays", "because"])


def flip_table(verdict: dict) -> pd.DataFrame:
    """What would turn each answer, for the pool of workloads."""
    pool = [p for p in verdict["points"] if p["workload"] == "all"]
    rows = [[p["configuration"], p["concurrency"], p["pays"], p["flip"]] for p in pool]
    return pd.DataFrame(rows, columns=["configuration", "C", "pays", "it takes"])


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
                **{answer: int(counts.get(answer, 0)) for answer in (YES, NO, NO_DIFFERENCE, UNDECIDED)},
            }
        )
    return pd.DataFrame(rows, columns=["configuration", YES, NO, NO_DIFFERENCE, UNDECIDED])


def readme_section(verdict: dict) -> str:
    """The verdict for a README: best per use, then whether speculation pays, then what is missing."""
    overall = uses_table(verdict)
    text = markdown.pipe_table(overall[overall.workload == "all"].drop(columns="workload"))
    if verdict.get("simulated"):
        text = f"**{SIMULATED}**\n\n{text}"
    counts = pays_table(verdict)
    if len(counts):
        text += "\n\nPoints (workload, C) at which speculation pays over the same engine without it:\n\n"
        text += markdown.pipe_table(counts)
    for row in verdict["not_measured"]:
        text += f"\n\n`{row['configuration']}`: {NOT_MEASURED} ({row['reason']})."
    return text + "\n"


def step_cost_table(costs: pd.DataFrame) -> pd.DataFrame:
    """What a step yields, what it costs in plain steps, and both speed-ups with intervals."""
    lengths = [f"{v:.2f}" if pd.notna(v) else NOT_MEASURED for v in costs.tokens_per_step]
    return pd.DataFrame(
        {
            "configuration": costs.configuration,
            "workload": costs.workload,
            "C": costs.concurrency,
            "tokens per step": lengths,
            "r = break-even length": interval_column(costs, "step_cost"),
            "decode speed-up": interval_column(costs, "decode_speed_up"),
            "throughput speed-up": interval_column(costs, "speed_up"),
        }
    )


def reported_step_costs_table(case: pd.DataFrame) -> pd.DataFrame:
    """The same arithmetic on the reported table; one decimal where the two sides served different batches."""
    costs = reported.step_costs(case)
    return pd.DataFrame(
        {
            "configuration (reported)": costs.configuration,
            "C": costs.concurrency,
            "accept length": [f"{v:.2f}" for v in costs.accept_length],
            "speed-up over base": [f"{v:.2f}" for v in costs.speed_up],
            "step-cost ratio r = break-even length": [
                f"{v:.2f}" if fair else f"{v:.1f}" for v, fair in zip(costs.step_cost, costs.like_for_like, strict=True)
            ],
            "note": costs.note,
        }
    )
