"""Step costs and ratios to base as tables for reading."""

import pandas as pd

from runners.core import format


def reported_step_costs_table(frame: pd.DataFrame) -> pd.DataFrame:
    """`reported` for reading."""
    return pd.DataFrame(
        {
            "configuration (reported)": frame.configuration,
            "C": frame.concurrency,
            "accept length": [f"{v:.2f}" for v in frame.accept_length],
            "speed-up over base": [f"{v:.2f}" for v in frame.speed_up],
            "step-cost ratio r = break-even length": [
                f"{v:.2f}" if fair else f"{v:.1f}" for v, fair in zip(frame.step_cost, frame.like_for_like, strict=True)
            ],
            "note": frame.note,
        }
    )


def _shown(costs: pd.DataFrame, name: str) -> list[str]:
    triples = costs[[name, f"{name}_lo", f"{name}_hi"]].itertuples(index=False)
    return [format.interval_text(*values) for values in triples]


def ratio_table(costs: pd.DataFrame) -> pd.DataFrame:
    """Output throughput and per-stream speed over the same engine's base, for reading."""
    return pd.DataFrame(
        {
            "configuration": costs.configuration,
            "workload": costs.workload,
            "C": costs.concurrency,
            "throughput / base": _shown(costs, "speed_up"),
            "stream speed / base": _shown(costs, "stream_speed_up"),
            "paired": ["yes" if p else "no" for p in costs.paired],
            "repeats": costs.n_repeats,
            "void": costs.n_void,
        }
    )


def step_cost_table(costs: pd.DataFrame) -> pd.DataFrame:
    """`step_costs` for reading: what a step yields, what it costs, and both speed-ups with intervals."""
    lengths = [f"{v:.2f}" if pd.notna(v) else format.NOT_MEASURED for v in costs.tokens_per_step]
    return pd.DataFrame(
        {
            "configuration": costs.configuration,
            "workload": costs.workload,
            "C": costs.concurrency,
            "tokens per step": lengths,
            "r = break-even length": _shown(costs, "step_cost"),
            "decode speed-up": _shown(costs, "decode_speed_up"),
            "throughput speed-up": _shown(costs, "speed_up"),
        }
    )
