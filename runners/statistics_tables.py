"""The measured figures and what the gates saw, as tables for reading."""

import pandas as pd

from runners import tables
from runners.intervals import written


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
        shown[title] = ["void" if pd.isna(t[0]) else written(*t, 1) for t in triples]
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
    for name, group in tables.ok(cells).groupby("configuration", sort=False):
        row = {"configuration": name, "ok cells": len(group)}
        for column, (title, how, digits) in looked.items():
            value = group[column].astype(float).agg(how)
            row[title] = "-" if pd.isna(value) else f"{value:.{digits}f}"
        rows.append(row)
    return pd.DataFrame(rows, columns=["configuration", "ok cells", *(t for t, _, _ in looked.values())])
