"""What acceptance figures mean: definitions in one place, all from raw counts.

A chain drafts K tokens a verification step. F steps, D_total drafted and A accepted tokens are counted; every rate is
a ratio of sums over cells, never a mean of rates. SGLang's `num_draft_tokens` D counts the bonus position: D = K + 1.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from runners import tables

BY = ["configuration", "engine", "method", "k"]


def _ratio(a: float, b: float) -> float:
    return float(a) / float(b) if pd.notna(a) and pd.notna(b) and b else float("nan")


def accept_length(steps: float, accepted: float) -> float:
    """AL = 1 + accepted / steps, tokens per verification step, the target's own token included; NaN without steps."""
    return 1 + _ratio(accepted, steps)


def draft_acceptance(drafted: float, accepted: float) -> float:
    """accepted / drafted, a share; for a full chain (AL - 1) / K. NaN if nothing was drafted."""
    return _ratio(accepted, drafted)


def survival(accepted_per_position: Sequence[float], steps: float) -> list[float]:
    """Share of steps that kept position 1, 2, ...: what engines print per position (unconditional)."""
    return [_ratio(a, steps) for a in accepted_per_position]


def conditional(accepted_per_position: Sequence[float], steps: float) -> list[float]:
    """Chance that a position is accepted given that the one before was: neighbour ratios; NaN after a zero."""
    return [_ratio(a, b) for a, b in zip(accepted_per_position, [steps, *accepted_per_position], strict=False)]


def decode_steps(output_tokens: float, requests: float, accepted: float) -> float:
    """Target passes of the decode phase, those without a draft included.

    The first token of a request comes from its prefill; each decode step yields its accepted drafts plus one. Engines
    do not count an n-gram step that found nothing to propose, so their own step count cannot give this.
    """
    return output_tokens - requests - accepted


def tokens_per_step(output_tokens: float, requests: float, accepted: float) -> float:
    """Output tokens per decode step, undrafted steps included: n-gram's honest accept length."""
    return _ratio(output_tokens - requests, decode_steps(output_tokens, requests, accepted))


def sglang_rate_old(al: float, num_draft_tokens: float) -> float:
    """SGLang's accept rate up to 0.5.10.post1: (A + F) / (F D) = AL / D. Counts the bonus token: its floor is 1 / D."""
    return _ratio(al, num_draft_tokens)


def sglang_rate_new(al: float, num_draft_tokens: float) -> float:
    """SGLang's accept rate from 0.5.11: A / (F (D - 1)) = (AL - 1) / (D - 1). Its floor is 0."""
    return _ratio(al - 1, num_draft_tokens - 1)


def expected_accept_length(a: float, k: int) -> float:
    """E[AL] = (1 - a^(K+1)) / (1 - a) if each draft is accepted with chance a, independently (Leviathan et al., 2023)."""
    return float(sum(a**i for i in range(k + 1)))


def acceptance_for(al: float, k: int) -> float:
    """The chance a that would give accept length `al` at K: the inverse of `expected_accept_length`; NaN outside [1, K+1]."""
    if not 1 <= al <= k + 1:
        return float("nan")
    if al in (1, k + 1):
        return float(al == k + 1)
    return float(brentq(lambda a: expected_accept_length(a, k) - al, 0, 1))


def add_positions(lists: Sequence) -> list[int] | None:
    """Element-wise sum of accepted_per_position of several cells, short lists padded with zeros; None if there is none."""
    known = [p for p in lists if isinstance(p, list | tuple | np.ndarray)]
    if not known:
        return None
    return [int(sum(p[i] for p in known if i < len(p))) for i in range(max(map(len, known)))]


def pooled(cells: pd.DataFrame, by: Sequence[str] = ("workload",)) -> pd.DataFrame:
    """One row per speculative configuration (and `by`): summed counts of ok cells and all that follows from them.

    Counts: steps, drafted, accepted, accepted_per_position, output_tokens, requests. Derived: accept_length,
    draft_acceptance, tokens_per_step, drafted_share (of decode steps, at most 1), survival, conditional, sglang_old,
    sglang_new (at D = K + 1), iid_acceptance.
    """
    counts = ["steps", "drafted", "accepted", "output_tokens", "requests"]
    derived = """accept_length draft_acceptance tokens_per_step drafted_share survival conditional sglang_old sglang_new
    iid_acceptance""".split()
    good = tables.ok(cells)
    good = good[good.method != "none"]
    rows = []
    for names, group in good.groupby([*BY, *by], sort=False, dropna=False):
        row = dict(zip([*BY, *by], names, strict=True)) | {c: group[c].sum() for c in counts}
        row["accepted_per_position"] = add_positions(list(group.accepted_per_position))
        rows.append(row | _derived(row))
    frame = pd.DataFrame(rows, columns=[*BY, *by, *counts, "accepted_per_position", *derived])
    return tables.ordered(frame, list(by)) if len(frame) else frame


def _derived(row: dict) -> dict:
    al = accept_length(row["steps"], row["accepted"])
    positions, d = row["accepted_per_position"] or [], row["k"] + 1
    every = decode_steps(row["output_tokens"], row["requests"], row["accepted"])
    k = int(row["k"]) if pd.notna(row["k"]) else 0
    return {
        "accept_length": al,
        "draft_acceptance": draft_acceptance(row["drafted"], row["accepted"]),
        "tokens_per_step": tokens_per_step(row["output_tokens"], row["requests"], row["accepted"]),
        # Engines also count a request's last, cut-off step, so the share can pass 1 by a hair.
        "drafted_share": min(1.0, _ratio(row["steps"], every)),
        "survival": survival(positions, row["steps"]),
        "conditional": conditional(positions, row["steps"]),
        "sglang_old": sglang_rate_old(al, d),
        "sglang_new": sglang_rate_new(al, d),
        "iid_acceptance": acceptance_for(al, k) if k else float("nan"),
    }


def effective_length(row: pd.Series | dict) -> float:
    """Tokens per step to set against the step cost: counted steps for a drafter model, all decode steps for n-gram."""
    if row["method"] == "ngram":
        return tokens_per_step(row["output_tokens"], row["requests"], row["accepted"])
    return accept_length(row["steps"], row["accepted"])


def positions(pool: pd.DataFrame) -> pd.DataFrame:
    """Long form of `pooled`: configuration, method, workload, position (from 1), survival, conditional."""
    rows = [
        {"configuration": r.configuration, "engine": r.engine, "method": r.method, "workload": r.workload,
         "position": i, "survival": s, "conditional": c}
        for r in pool.itertuples()
        for i, (s, c) in enumerate(zip(r.survival, r.conditional, strict=True), start=1)
    ]  # fmt: skip
    return pd.DataFrame(
        rows, columns=["configuration", "engine", "method", "workload", "position", "survival", "conditional"]
    )


def _percent(v: float, decimals: int = 1) -> str:
    return "-" if pd.isna(v) else f"{v:.{decimals}%}"


def _number(v: float, decimals: int = 2) -> str:
    return "-" if pd.isna(v) else f"{v:,.{decimals}f}"


def counts_table(pool: pd.DataFrame) -> pd.DataFrame:
    """The raw counts, and the two lengths that follow from them."""
    return pd.DataFrame(
        {
            "configuration": pool.configuration,
            "workload": pool.workload,
            "K": [_number(v, 0) for v in pool.k],
            "steps with a draft": [_number(v, 0) for v in pool.steps],
            "drafted": [_number(v, 0) for v in pool.drafted],
            "accepted": [_number(v, 0) for v in pool.accepted],
            "accept length": [_number(v) for v in pool.accept_length],
            "steps drafted": [_percent(v, 0) for v in pool.drafted_share],
            "tokens per decode step": [_number(v) for v in pool.tokens_per_step],
        }
    )


def definitions_table(pool: pd.DataFrame) -> pd.DataFrame:
    """The same counts under each definition in use, side by side."""
    return pd.DataFrame(
        {
            "configuration": pool.configuration,
            "workload": pool.workload,
            "accept length": [_number(v) for v in pool.accept_length],
            "D = K + 1": [_number(v + 1, 0) for v in pool.k],
            "old SGLang rate, AL/D": [_percent(v) for v in pool.sglang_old],
            "its floor, 1/D": [_percent(1 / (v + 1)) for v in pool.k],
            "new SGLang rate, (AL-1)/(D-1)": [_percent(v) for v in pool.sglang_new],
            "accepted / drafted": [_percent(v) for v in pool.draft_acceptance],
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
            by_position = {f"position {p}": _percent(v) for p, v in zip(group.position, group[figure], strict=True)}
            rows.append({"configuration": configuration, "workload": workload, "figure": figure, **by_position})
    return pd.DataFrame(rows).fillna("-")


def reported_table(case: pd.DataFrame) -> pd.DataFrame:
    """The case's drafters: the rate as printed, and what the same accept length means under both definitions."""
    drafted = case[case.accept_length.notna()]
    al, d = drafted.accept_length, drafted.num_draft_tokens
    return pd.DataFrame(
        {
            "configuration (reported)": drafted.configuration,
            "accept rate as printed": [_percent(v, 0) for v in drafted.accept_rate_as_printed],
            "accept length": [_number(v) for v in al],
            "D": [_number(v, 0) for v in d],
            "AL/D": [_percent(sglang_rate_old(*p), 0) for p in zip(al, d, strict=True)],
            "(AL-1)/(D-1)": [_percent(sglang_rate_new(*p), 0) for p in zip(al, d, strict=True)],
            "drafts accepted per step": [f"{a - 1:.2f} of {n - 1:.0f}" for a, n in zip(al, d, strict=True)],
        }
    ).reset_index(drop=True)


def control(cells: pd.DataFrame) -> pd.DataFrame:
    """Pooled rows of measured drafter models of which the target accepted nothing: the controls at the floor."""
    pool = pooled(cells, by=())
    return pool[(pool.method != "ngram") & (pool.drafted > 0) & (pool.accepted == 0)]


def glue_values(cells: pd.DataFrame, case: pd.DataFrame, configurations: pd.DataFrame) -> dict[str, str]:
    """The figures that prose may quote from the acceptance notebook, as text; see the notebook's last cell."""
    missing = tables.NOT_MEASURED
    d = int(case.num_draft_tokens.max())
    out = {
        "floor_draft_tokens": str(d),
        "floor_accept_length": _number(accept_length(1, 0)),
        "floor_rate_old": _percent(sglang_rate_old(1.0, d), 0),
        "floor_rate_new": _percent(sglang_rate_new(1.0, d), 0),
    }
    for r in case[case.accept_length.notna()].itertuples():
        name = tables.slug(r.configuration)
        out[f"reported_accept_length_{name}"] = _number(r.accept_length)
        out[f"reported_rate_printed_{name}"] = _percent(r.accept_rate_as_printed, 0)
        out[f"reported_rate_old_{name}"] = _percent(sglang_rate_old(r.accept_length, r.num_draft_tokens), 0)
        out[f"reported_rate_new_{name}"] = _percent(sglang_rate_new(r.accept_length, r.num_draft_tokens), 0)
        out[f"reported_accepted_per_step_{name}"] = _number(r.accept_length - 1)
    floor = control(cells)
    out["control_configurations"] = ", ".join(floor.configuration) or "none"
    summed = {c: floor[c].sum() for c in ("steps", "drafted", "accepted")}
    al, width = accept_length(summed["steps"], summed["accepted"]), floor.k.max() + 1
    texts = [*(_number(v, 0) for v in summed.values()), _number(al)]
    texts += [_percent(sglang_rate_old(al, width), 0), _percent(sglang_rate_new(al, width), 0)]
    names = "steps drafted accepted accept_length rate_old rate_new".split()
    out |= {f"control_{n}": t if len(floor) else missing for n, t in zip(names, texts, strict=True)}
    ngram = pooled(cells).query("method == 'ngram'").sort_values("tokens_per_step", ascending=False, kind="stable")
    best = ngram.iloc[0] if len(ngram) else None
    for n in ("configuration", "workload"):
        out[f"ngram_best_{n}"] = missing if best is None else best[n]
    for n, f in (("tokens_per_step", _number), ("accept_length", _number), ("drafted_share", _percent)):
        out[f"ngram_best_{n}"] = missing if best is None else f(best[n])
    rows = pooled(cells, by=()).set_index("configuration")
    for name in configurations[configurations.method != "none"].configuration:
        row = rows.loc[name] if name in rows.index else None
        figures = {
            "accept_length": ("accept_length", _number), "tokens_per_step": ("tokens_per_step", _number),
            "draft_acceptance": ("draft_acceptance", _percent), "rate_old": ("sglang_old", _percent),
            "rate_new": ("sglang_new", _percent), "steps": ("steps", lambda v: _number(v, 0)),
            "drafted": ("drafted", lambda v: _number(v, 0)), "accepted": ("accepted", lambda v: _number(v, 0)),
        }  # fmt: skip
        for key, (column, write) in figures.items():
            out[f"{key}_{tables.slug(name)}"] = missing if row is None else write(row[column])
        first = missing if row is None or not row.survival else _percent(row.survival[0])
        out[f"first_position_{tables.slug(name)}"] = first
    return out
