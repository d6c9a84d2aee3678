"""Acceptance for reading: counts, definitions side by side, positions, the case's rates, the old rate's floor."""

import pandas as pd

from runners.acceptance import accept_length, positions, sglang_rate_new, sglang_rate_old


def percent(v: float, decimals: int = 1) -> str:
    return "-" if pd.isna(v) else f"{v:.{decimals}%}"


def number(v: float, decimals: int = 2) -> str:
    return "-" if pd.isna(v) else f"{v:,.{decimals}f}"


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
            "D = K + 1": [number(v + 1, 0) for v in pool.k],
            "old SGLang rate, AL/D": [percent(v) for v in pool.sglang_old],
            "its floor, 1/D": [percent(1 / (v + 1)) for v in pool.k],
            "new SGLang rate, (AL-1)/(D-1)": [percent(v) for v in pool.sglang_new],
            "accepted / drafted": [percent(v) for v in pool.draft_acceptance],
        }
    )


def positions_table(pool: pd.DataFrame) -> pd.DataFrame:
    """Survival and conditional acceptance, one row a configuration and workload, one column a position."""
    long = positions(pool)
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
    al, d = drafted.accept_length, drafted.num_draft_tokens
    return pd.DataFrame(
        {
            "configuration (reported)": drafted.configuration,
            "accept rate as printed": [percent(v, 0) for v in drafted.accept_rate_as_printed],
            "accept length": [number(v) for v in al],
            "D": [number(v, 0) for v in d],
            "AL/D": [percent(sglang_rate_old(*p), 0) for p in zip(al, d, strict=True)],
            "(AL-1)/(D-1)": [percent(sglang_rate_new(*p), 0) for p in zip(al, d, strict=True)],
            "drafts accepted per step": [f"{a - 1:.2f} of {n - 1:.0f}" for a, n in zip(al, d, strict=True)],
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
                "steps F": f"{steps:,}",
                "drafted F (D - 1)": f"{k * steps:,}",
                "accepted A": f"{accepted:,}",
                "accept length": number(al),
                "old rate, (A + F) / (F D)": percent(sglang_rate_old(al, num_draft_tokens)),
                "new rate, A / (F (D - 1))": percent(sglang_rate_new(al, num_draft_tokens)),
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
