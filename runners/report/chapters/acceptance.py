"""Chapter Acceptance: counts, definitions side by side, positions, the case's rates, sentences and glue values."""

import pandas as pd

from runners.analyse import acceptance
from runners.core import format
from runners.core.acceptance_math import accept_length, sglang_rate_new, sglang_rate_old
from runners.core.format import listed, number, percent
from runners.report.glue_values import MISSING


def counts_table(pool: pd.DataFrame) -> pd.DataFrame:
    """The raw counts, and the two lengths that follow from them."""
    return pd.DataFrame(
        {
            "configuration": pool.configuration,
            "workload": pool.workload,
            "K": [number(v, 0) for v in pool.k],
            "steps with a draft": [number(v, 0) for v in pool.steps],
            "drafted": [number(v, 0) for v in pool.drafted],
            "accepted": [number(v, 0) for v in pool.accepted],
            "accept length": [number(v) for v in pool.accept_length],
            "steps drafted": [percent(v, 0) for v in pool.drafted_share],
            "tokens per decode step": [number(v) for v in pool.tokens_per_step],
        }
    )


def definitions_table(pool: pd.DataFrame) -> pd.DataFrame:
    """The same counts under each definition in use, side by side."""
    return pd.DataFrame(
        {
            "configuration": pool.configuration,
            "workload": pool.workload,
            "accept length": [number(v) for v in pool.accept_length],
            "K + 1": [number(v + 1, 0) for v in pool.k],
            "old SGLang rate, AL / (K + 1)": [percent(v) for v in pool.sglang_old],
            "its floor, 1 / (K + 1)": [percent(1 / (v + 1)) for v in pool.k],
            "new SGLang rate, (AL - 1) / K": [percent(v) for v in pool.sglang_new],
            "draft acceptance, A / D": [percent(v) for v in pool.draft_acceptance],
        }
    )


def positions_table(pool: pd.DataFrame) -> pd.DataFrame:
    """Survival and conditional acceptance, one row a configuration and workload, one column a position."""
    long = acceptance.positions(pool)
    if long.empty:
        return pd.DataFrame(columns=["configuration", "workload", "figure"])
    rows = []
    for (configuration, workload), group in long.groupby(["configuration", "workload"], sort=False):
        for figure in ("survival", "conditional"):
            by_position = {f"position {p}": percent(v) for p, v in zip(group.position, group[figure], strict=True)}
            rows.append({"configuration": configuration, "workload": workload, "figure": figure, **by_position})
    return pd.DataFrame(rows).fillna("-")


def reported_table(case: pd.DataFrame) -> pd.DataFrame:
    """The case's drafters: the rate as printed, and the same accept length under both definitions."""
    drafted = case[case.accept_length.notna()]
    al, width = drafted.accept_length, drafted.num_draft_tokens
    return pd.DataFrame(
        {
            "configuration (reported)": drafted.configuration,
            "accept rate as printed": [percent(v, 0) for v in drafted.accept_rate_as_printed],
            "accept length": [number(v) for v in al],
            "K + 1": [number(v, 0) for v in width],
            "AL / (K + 1)": [percent(sglang_rate_old(*p), 0) for p in zip(al, width, strict=True)],
            "(AL - 1) / K": [percent(sglang_rate_new(*p), 0) for p in zip(al, width, strict=True)],
            "drafts accepted per step": [f"{a - 1:.2f} of {n - 1:.0f}" for a, n in zip(al, width, strict=True)],
        }
    ).reset_index(drop=True)


def floor_table(num_draft_tokens: int, steps: int = 1000) -> pd.DataFrame:
    """What both SGLang definitions print as the accepted tokens grow from none, over `steps` steps."""
    k = num_draft_tokens - 1
    rows = []
    for accepted in sorted({0, steps // 4, steps // 2, steps, k * steps}):
        al = accept_length(steps, accepted)
        rows.append(
            {
                "steps S": f"{steps:,}",
                "drafted D = S K": f"{k * steps:,}",
                "accepted A": f"{accepted:,}",
                "accept length": number(al),
                "old rate, (A + S) / (S (K + 1))": percent(sglang_rate_old(al, num_draft_tokens)),
                "new rate, A / (S K)": percent(sglang_rate_new(al, num_draft_tokens)),
            }
        )
    return pd.DataFrame(rows)


def chance_table(pool: pd.DataFrame) -> pd.DataFrame:
    """The chance per token that independence needs for each accept length, and what a chain can reach."""
    known = pool[pool.accept_length.notna()]
    return pd.DataFrame(
        {
            "configuration": known.configuration,
            "workload": known.workload,
            "accept length": [number(v) for v in known.accept_length],
            "chance a that explains it": [percent(v) for v in known.iid_acceptance],
            "measured at position 1": [percent(s[0]) if s else "-" for s in known.survival],
            "at most, K + 1": [number(v + 1, 0) for v in known.k],
        }
    )


def quoted(cells: pd.DataFrame, case: pd.DataFrame, statuses: pd.DataFrame) -> dict[str, str]:
    """Keys of the acceptance notebook."""
    width = case.num_draft_tokens.max()
    out = {
        "floor_draft_tokens": number(width, 0),
        "floor_accept_length": number(accept_length(1, 0)),
        "floor_rate_old": percent(sglang_rate_old(1.0, width), 0),
        "floor_rate_new": percent(sglang_rate_new(1.0, width), 0),
    }
    for row in case[case.accept_length.notna()].itertuples():
        name, al, width = format.slug(row.configuration), row.accept_length, row.num_draft_tokens
        out |= {
            f"reported_accept_length_{name}": number(al),
            f"reported_rate_printed_{name}": percent(row.accept_rate_as_printed, 0),
            f"reported_rate_old_{name}": percent(sglang_rate_old(al, width), 0),
            f"reported_rate_new_{name}": percent(sglang_rate_new(al, width), 0),
            f"reported_accepted_per_step_{name}": number(al - 1),
        }
    return out | _control(cells) | _ngram(cells) | _each_acceptance(cells, statuses)


def _control(cells: pd.DataFrame) -> dict[str, str]:
    floor = acceptance.control(cells)
    steps, drafted, accepted = (floor[c].sum() for c in ("steps", "drafted", "accepted"))
    al, width = accept_length(steps, accepted), floor.k.max() + 1
    texts = {
        "steps": number(steps, 0),
        "drafted": number(drafted, 0),
        "accepted": number(accepted, 0),
        "accept_length": number(al),
        "rate_old": percent(sglang_rate_old(al, width), 0),
        "rate_new": percent(sglang_rate_new(al, width), 0),
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
            out[f"{named.get(column, column)}_{format.slug(name)}"] = value
        first = row.survival[0] if row is not None and row.survival else float("nan")
        out[f"first_position_{format.slug(name)}"] = percent(first) if pd.notna(first) else MISSING
    return out


def floor_sentence(quoted: dict[str, str]) -> str:
    """The floor of the old rate, at the case's number of draft tokens."""
    return (
        f"With K + 1 = {quoted['floor_draft_tokens']} and nothing accepted the accept length is "
        f"{quoted['floor_accept_length']}; the old rate prints {quoted['floor_rate_old']} for it and the "
        f"new one {quoted['floor_rate_new']}. So a printed {quoted['floor_rate_old']} is the floor of the "
        "old scale, and says that no drafted token was kept."
    )


def ngram_sentence(quoted: dict[str, str]) -> str:
    """The n-gram point that gains most a step, under both ways of counting."""
    if quoted["ngram_best_configuration"] == format.NOT_MEASURED:
        return f"N-gram speculation: {format.NOT_MEASURED}."
    return (
        f"Most tokens per decode step with n-gram: {quoted['ngram_best_tokens_per_step']} "
        f"(`{quoted['ngram_best_configuration']}`, {quoted['ngram_best_workload']}), with a draft at "
        f"{quoted['ngram_best_drafted_share']} of the steps. Counting only those, the accept length "
        f"would read {quoted['ngram_best_accept_length']}."
    )


def control_sentence(quoted: dict[str, str]) -> str:
    """Where the controls stand."""
    if quoted["control_steps"] == format.NOT_MEASURED:
        return f"A drafter of which nothing is accepted: {format.NOT_MEASURED}."
    return (
        f"{quoted['control_configurations']}: {quoted['control_accepted']} of {quoted['control_drafted']} "
        f"drafted tokens accepted over {quoted['control_steps']} steps. Accept length "
        f"{quoted['control_accept_length']}, old rate {quoted['control_rate_old']}, "
        f"new rate {quoted['control_rate_new']}."
    )
