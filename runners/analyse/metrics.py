"""The metrics of a cell and of a request."""

from dataclasses import dataclass

import pandas as pd

RAMP, TIMED, CUT = "ramp", "timed", "cut"  # a request's place in its window; a ledger without windows names none


@dataclass(frozen=True)
class Metric:
    """How a metric is named."""

    column: str  # of the cells: the ledger's figure
    slower_is_more: bool = False


METRICS = {
    "throughput": Metric("output_tokens_per_second"),
    "stream": Metric("stream_tokens_per_second_p50"),
    "ttft_ms": Metric("ttft_ms_p50", slower_is_more=True),
    "tpot_ms": Metric("tpot_ms_p50", slower_is_more=True),
    "goodput": Metric("goodput_tokens_per_second"),  # goodput.attach
}


def request_metrics(requests: pd.DataFrame) -> pd.DataFrame:
    """Per timed request without an error: key, prompt_id, duration_s, stream (decode tokens/s), ttft_ms, tpot_ms,
    decode_s, decode_tokens. The first token belongs to the prefill.

    Idempotent: a caller with many points computes them once.
    """
    if "decode_s" in requests:
        return requests
    frame = requests[requests.error.isna()] if "error" in requests else requests
    if "role" in frame:
        frame = frame[frame.role.isna() | (frame.role == TIMED)]
    decode_s = (frame.last_token_s - frame.first_token_s).astype(float)
    decode_tokens = (frame.output_tokens - 1).astype(float)
    usable = (decode_s > 0) & (decode_tokens > 0)
    return frame[["key", "prompt_id"]].assign(
        duration_s=(frame.last_token_s - frame.sent_s).astype(float),
        stream=(decode_tokens / decode_s).where(usable),
        ttft_ms=1000 * (frame.first_token_s - frame.sent_s).astype(float),
        tpot_ms=(1000 * decode_s / decode_tokens).where(usable),
        decode_s=decode_s.where(usable),
        decode_tokens=decode_tokens.where(usable),
    )


def decode_tpot(cells: pd.DataFrame, requests: pd.DataFrame) -> pd.Series:
    """Milliseconds per decode token of each cell: all decode time over all decode tokens.

    A ratio of sums, as the accept length is, so that AL / r is exactly the decode speed-up. Of the window, where the
    row has its sums (speeds.decoding); else of the timed requests; else the ledger's median. Float series on the cells'
    index.
    """
    sums = request_metrics(requests).groupby("key")[["decode_s", "decode_tokens"]].sum()
    own = sums.reindex(cells["key"])
    tpot = (1000 * own.decode_s / own.decode_tokens).where(own.decode_tokens > 0)
    found = pd.Series(tpot.to_numpy(dtype=float), index=cells.index).fillna(cells["tpot_ms_p50"].astype(float))
    if "decode_tokens" not in cells:
        return found
    seconds, tokens = cells["decode_seconds"].astype(float), cells["decode_tokens"].astype(float)
    return (1000 * seconds / tokens).where(tokens > 0).fillna(found)
