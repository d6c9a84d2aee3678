"""The case's reported figures beside the verdict: its own choice, and the step costs that they imply."""

import pandas as pd

from runners.analyse import reported
from runners.core.format import NOT_MEASURED, number


def break_even_sentence(case: pd.DataFrame) -> str:
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


def best_sentence(case: pd.DataFrame) -> str:
    """The case's own choice: the fastest reported row on a single stream and at C=128."""
    single = case.loc[case.single_stream_tok_s.idxmax()]
    many = case.loc[case.c128_tok_s.idxmax()]
    return (
        f"In the reported figures `{single.configuration}` has the fastest single stream "
        f"({single.single_stream_tok_s:,.1f} tok/s) and `{many.configuration}` the highest throughput "
        f"at C=128 ({many.c128_tok_s:,.0f} tok/s)."
    )


def step_costs_table(case: pd.DataFrame) -> pd.DataFrame:
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
