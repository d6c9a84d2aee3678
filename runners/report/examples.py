"""Rows that the one visible calculation of a chapter starts from."""

import pandas as pd

from runners.analyse import acceptance, results
from runners.analyse.blocks import numbered


def beside_base(cells: pd.DataFrame) -> pd.DataFrame:
    """Each ok speculative cell beside its base's cell of the same block.

    Columns: those of `results.cells`, with the suffix `_base` for the base's, and tokens_per_step (of the speculative
    cell, from its counts). Drafter models come before n-gram, whose steps are of two kinds, with and without a draft;
    among them the cell with most tokens per step comes first. Empty where no cell has such a neighbour.
    """
    good = numbered(results.ok(cells))
    good = good[good.forced_accept_length.isna()]  # an engine that makes up its accept length says nothing of a drafter
    speculative = good[good.method != "none"]
    names = speculative[["engine", "configuration"]].drop_duplicates().itertuples(index=False)
    base_of = {name: results.base_of(good, engine, name) for engine, name in names}
    point = ["base", "engine", "workload", "concurrency", "campaign", "start", "block"]
    pairs = speculative.assign(base=speculative.configuration.map(base_of).astype(object)).merge(
        good.assign(base=good.configuration), on=point, suffixes=("", "_base")
    )
    pairs = pairs.assign(tokens_per_step=[acceptance.tokens_per_step(row) for _, row in pairs.iterrows()])
    pairs = pairs.dropna(subset=["tokens_per_step", "tpot_ms_p50", "tpot_ms_p50_base"])
    pairs = pairs.sort_values("tokens_per_step", ascending=False, kind="stable")
    return pairs.sort_values("method", key=lambda method: method == "ngram", kind="stable")


def two_cells(cells: pd.DataFrame, pair) -> pd.DataFrame:
    """The two rows of `cells` that a row of `beside_base` was made of."""
    return cells[cells.key.isin([pair.key, pair.key_base])]
