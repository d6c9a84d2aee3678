"""Named values of what others reported: the files in data/reported."""

import pandas as pd

from runners.analyse import reported
from runners.claims.value_names import word
from runners.core import paths

FOLDER = paths.DATA / "reported"


def of_case() -> dict[str, float]:
    """The case's own table, as its team reported it: case.<configuration>.<figure>."""
    found: dict[str, float] = {}
    for r in reported.case().itertuples():
        values = {"c1": r.single_stream_tok_s, "c128": r.c128_tok_s, "accept_length": r.accept_length}
        values |= {"accept_rate": r.accept_rate_as_printed, "d": r.num_draft_tokens}
        found |= {f"case.{word(r.configuration)}.{k}": float(v) for k, v in values.items() if pd.notna(v)}
    return found


def of_publications() -> dict[str, float]:
    """Published accept lengths of drafters for the case's target, and speed-ups of a sister model."""
    lengths = reported.published_lengths()["accept_length"]
    found = {"k25.lowest": lengths.min(), "k25.highest": lengths.max()}
    sister = pd.read_csv(FOLDER / "public_k26_speculation.csv")
    for r in sister.dropna().itertuples():
        found[f"k26.ctx_{r.context}.c{r.concurrency}"] = r.tokens_per_second_eagle3 / r.tokens_per_second_base
    return found


def of_audit() -> dict[str, float]:
    """How many SGLang releases do what (`specverdict audit-sglang`); empty where there was no audit."""
    file = FOLDER / "sglang_releases.csv"
    if not file.is_file():
        return {}
    rows = pd.read_csv(file, dtype=str)
    # A release may have several default caps on running requests, by how it is started.
    caps = pd.to_numeric(rows["default_cap"].str.split(", ").explode(), errors="coerce").dropna()
    return {
        "audit.releases": float(len(rows)),
        "audit.with_model": float((rows["kimi_k25"] == "present").sum()),
        "audit.needed": float((rows["patch"] == "needed").sum()),
        "audit.bonus_in_rate": float((rows["accept_rate"] == "AL / D").sum()),
        "audit.always_plus_one": float((rows["plus_one_deepseek_v2"] == "always").sum()),
        "audit.lowest_cap": float(caps.min()),
        "audit.highest_cap": float(caps.max()),
    }
