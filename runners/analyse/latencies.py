"""How long users wait at each point: p50, p95 and p99 over the requests of its good cells, all blocks together.

As speeds.py has them for one cell: TTFT and end-to-end latency count from when a request was intended, TTFT also of
requests that were cut, TPOT after the first token.
"""

import numpy as np
import pandas as pd

from runners.analyse import results
from runners.analyse.metrics import CUT, TIMED

POINT = ["configuration", "workload", "concurrency"]
FIGURES = ("ttft_ms", "tpot_ms", "e2e_ms")
PERCENTILES = (50, 95, 99)


def latencies(cells: pd.DataFrame, requests: pd.DataFrame) -> pd.DataFrame:
    """One row a configuration, workload and concurrency: POINT, `requests` (answered in the windows), and each of
    FIGURES as `<figure>_p50`, `_p95`, `_p99`, in ms; NaN where no request tells.

    cells, requests: the frames of results.py. Void cells and synthetic acceptance are left out. Of n requests the
    percentile q lies between the two nearest ranks (numpy's linear interpolation).
    """
    good = results.ok(cells)
    good = good[good.forced_accept_length.isna()]
    own = requests.drop(columns="configuration").merge(good[["key", *POINT]], on="key")
    own = own[own.error.isna()]
    timed = own.role.isna() | (own.role == TIMED)
    # The first requests of a window were sent before it opened.
    begun = own.role.isna() | (own.role.isin([TIMED, CUT]) & (own.intended_s > 0))
    seconds, tokens = (own.last_token_s - own.first_token_s).astype(float), own.output_tokens.astype(float) - 1
    own = own.assign(
        timed=timed,
        ttft_ms=1000 * (own.first_token_s - own.intended_s).astype(float).where(begun),
        tpot_ms=(1000 * seconds / tokens).where(timed & (tokens > 0) & (seconds > 0)),
        e2e_ms=1000 * (own.last_token_s - own.intended_s).astype(float).where(timed),
    )
    rows = [
        dict(zip(POINT, names, strict=True)) | {"requests": int(group.timed.sum())} | _percentiles(group)
        for names, group in own.groupby(POINT, sort=False)
    ]
    columns = [*POINT, "requests", *(f"{figure}_p{q}" for figure in FIGURES for q in PERCENTILES)]
    return pd.DataFrame(rows, columns=columns).astype({"concurrency": "int64"})


def _percentiles(requests: pd.DataFrame) -> dict[str, float]:
    found: dict[str, float] = {}
    for figure in FIGURES:
        known = requests[figure].dropna().to_numpy()
        values = np.percentile(known, PERCENTILES) if len(known) else [np.nan] * len(PERCENTILES)
        found |= {f"{figure}_p{q}": float(v) for q, v in zip(PERCENTILES, values, strict=True)}
    return found
