"""Chapter Acceptance: the counts, every definition of a rate side by side, and the controls at the floor."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runners.analyse import reported, results
from runners.analyse.acceptance import control, is_modelled, pooled, positions
from runners.core.acceptance_math import accept_length, sglang_rate_new, sglang_rate_old
from runners.core.format import NOT_MEASURED, listed, number, percent
from runners.report.columns import marked


@dataclass(frozen=True)
class Data:
    """What the chapter shows."""

    folder: Path  # of the profile's runs: <configuration>/cells.jsonl
    statuses: pd.DataFrame
    pool: pd.DataFrame  # acceptance.pooled: counts of the ok cells by configuration and workload
    control: pd.DataFrame  # acceptance.control: drafters of which (nearly) nothing is accepted
    case: pd.DataFrame  # reported, not measured

    @property
    def drafter_models(self) -> pd.DataFrame:
        """`pool` without n-gram, whose accept length leaves out the steps without a draft; the best drafter first."""
        rows = self.pool[self.pool.method != "ngram"]
        return rows.sort_values("accept_length", ascending=False, kind="stable")


def load(runs: str | Path, profile: str) -> Data:
    """Read a profile's cells and pool their counts; frames are empty where nothing was measured."""
    cells = results.cells(runs, profile)
    return Data(
        results.home(runs, profile),
        results.statuses(runs, profile),
        pooled(cells),
        control(cells),
        reported.case(),
    )


def glue_values(data: Data) -> dict[str, str]:
    """The figures that pages of the book quote from this chapter: the controls, all of them pooled."""
    steps, drafted, accepted = (data.control[c].sum() for c in ("steps", "drafted", "accepted"))
    al, num_draft_tokens = accept_length(steps, accepted), data.control.k.max() + 1
    values = {
        "control_steps": number(steps, 0),
        "control_drafted": number(drafted, 0),
        "control_accepted": number(accepted, 0),
        "control_accept_length": number(al),
        "control_rate_old": percent(sglang_rate_old(al, num_draft_tokens), 0),
        "control_rate_new": percent(sglang_rate_new(al, num_draft_tokens), 0),
    }
    return values if len(data.control) else dict.fromkeys(values, NOT_MEASURED)


def floor_sentence(case: pd.DataFrame) -> str:
    """The floor of the old rate, at the case's number of draft tokens."""
    d = case.num_draft_tokens.max()
    old, new = percent(sglang_rate_old(1.0, d), 0), percent(sglang_rate_new(1.0, d), 0)
    return (
        f"With K + 1 = {number(d, 0)} and nothing accepted the accept length is {number(accept_length(1, 0))}; the old "
        f"rate prints {old} for it and the new one {new}. So a printed {old} is the floor of the old scale, and says "
        "that no drafted token was kept."
    )


def ngram_sentence(pool: pd.DataFrame) -> str:
    """The n-gram point that gains most a step, under both ways of counting."""
    rows = pool[pool.method == "ngram"].sort_values("tokens_per_step", ascending=False, kind="stable")
    if rows.empty:
        return f"N-gram speculation: {NOT_MEASURED}."
    best = rows.iloc[0]
    return (
        f"Most tokens per decode step with n-gram: {number(best.tokens_per_step)} "
        f"(`{best.configuration}`, {best.workload}), with a draft at "
        f"{percent(best.drafted_share, 0)} of the steps. Counting only those, the accept length "
        f"would read {number(best.accept_length)}."
    )


def control_sentence(data: Data) -> str:
    """Where the controls stand: at the floor, if the counting is right."""
    if data.control.empty:
        return f"A drafter of which nothing is accepted: {NOT_MEASURED}."
    values = glue_values(data)
    return (
        f"{listed(data.control.configuration)}: {values['control_accepted']} of {values['control_drafted']} "
        f"drafted tokens accepted over {values['control_steps']} steps. Accept length "
        f"{values['control_accept_length']}, old rate {values['control_rate_old']}, "
        f"new rate {values['control_rate_new']}."
    )


def counts_table(pool: pd.DataFrame) -> pd.DataFrame:
    """The raw counts, and the two lengths that follow from them."""
    modelled = [is_modelled(*names) for names in zip(pool.engine, pool.method, strict=True)]
    return pd.DataFrame(
        {
            "configuration": pool.configuration,
            "workload": pool.workload,
            "K": [number(v, 0) for v in pool.k],
            "steps with a draft": [number(v, 0) for v in pool.steps],
            "drafted": [number(v, 0) for v in pool.drafted],
            "accepted": [number(v, 0) for v in pool.accepted],
            "accept length": [number(v) for v in pool.accept_length],
            "steps drafted": marked((percent(v, 0) for v in pool.drafted_share), modelled),
            "tokens per decode step": marked(map(number, pool.tokens_per_step), modelled),
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
