"""A cell's speeds from the client's time stamps, as its row holds them.

Inside the window tokens count by their own arrival, whatever request they belong to. Latencies are those of the timed
requests: TTFT and end-to-end latency from when a request was intended, TTFT also of those that were cut, TPOT after the
first token. Where no answer ended in the window, its TPOT is all decode time over all decode tokens in it. ITL is the
time between two chunks of a stream, as vLLM's benchmark has it (benchmarks/serve.py): where a chunk holds several
accepted tokens it is longer than TPOT.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from runners.measure.client import CUT, TIMED, Loop, Result

PERCENTILES = (50, 95, 99)


def speeds(loop: Loop) -> dict[str, Any]:
    """Speeds over the window, and the client's own cost; None where no answer gives one.

    Names and units are those of cell_row.CellRow.
    """
    answered = [r for r in loop.results if r.role == TIMED and r.error is None and r.output_tokens]
    begun = [r for r in loop.results if r.role in (TIMED, CUT) and r.error is None and r.intended_s > 0]
    per_token = [seconds for r in answered if (seconds := seconds_per_token(r)) is not None]
    prompts = [r.prompt_tokens for r in answered if r.prompt_tokens is not None]
    sources = {r.count_source for r in answered}
    begin, end = loop.window or (0.0, loop.seconds)
    tokens = sum(tokens_in(r, begin, end) for r in loop.results if r.error is None)
    every = sum(int(r.output_tokens or 0) for r in loop.results)
    decode_s, decode_tokens = decoding(loop.results, begin, end)
    if not per_token and decode_tokens and decode_s > 0:
        per_token = [decode_s / decode_tokens]
    return {
        "context_tokens": rounded(np.mean(prompts), 1) if prompts else None,
        "output_tokens": tokens,
        "seconds": rounded(end - begin),
        # All streams together: what a client of C streams gets.
        "output_tokens_per_second": rounded(tokens / (end - begin), 3) if tokens and end > begin else None,
        # Medians, so that one request that waited for a neighbour does not speak for the cell.
        "stream_tokens_per_second_p50": rounded(1 / np.median(per_token), 3) if per_token else None,
        **_percentiles("ttft_ms", [r.first_token_s - r.intended_s for r in begun if r.first_token_s is not None]),
        **_percentiles("tpot_ms", per_token),
        **_percentiles("itl_ms", [float(gap) for r in answered for gap in np.diff(r.token_s)]),
        **_percentiles("e2e_ms", [r.last_token_s - r.intended_s for r in answered if r.last_token_s is not None]),
        "decode_seconds": rounded(decode_s),
        "decode_tokens": decode_tokens,
        "count_source": sources.pop() if len(sources) == 1 else None,
        "client_cpu_us_per_token": rounded(1e6 * loop.client_cpu_s / every, 1) if every else None,
    }


def tokens_in(result: Result, begin: float, end: float) -> int:
    """Tokens of one request that arrived after `begin` and not after `end`; all of it where chunks were not kept."""
    if not result.token_s:
        return int(result.output_tokens or 0)
    return sum(n for at, n in zip(result.token_s, result.token_counts, strict=True) if begin < at <= end)


def decoding(results: Sequence[Result], begin: float, end: float) -> tuple[float, int]:
    """(seconds, tokens) of decoding inside the window, over all requests: what lies after each one's first token.

    Their ratio is the time per output token of the whole window, those of requests that were cut included.
    """
    seconds, tokens = 0.0, 0
    for r in results:
        if r.error is not None or len(r.token_s) < 2:
            continue
        since, until = max(begin, r.token_s[0]), min(end, r.token_s[-1])
        if until > since:
            seconds += until - since
            tokens += tokens_in(r, since, until)
    return seconds, tokens


def occupancy(loop: Loop, concurrency: int) -> float | None:
    """Mean requests in flight over the window, as a share of C; None without a window."""
    if loop.window is None:
        return None
    begin, end = loop.window
    held = sum(
        max(0.0, min(end, end if r.last_token_s is None or r.role == CUT else r.last_token_s) - max(begin, r.sent_s))
        for r in loop.results
    )
    return held / (end - begin) / concurrency


def _percentiles(name: str, seconds: Sequence[float]) -> dict[str, float | None]:
    """name_p50, _p95 and _p99 in milliseconds."""
    if not seconds:
        return {f"{name}_p{q}": None for q in PERCENTILES}
    found = np.percentile(seconds, PERCENTILES)
    return {f"{name}_p{q}": rounded(1e3 * value) for q, value in zip(PERCENTILES, found, strict=True)}


def seconds_per_token(result: Result) -> float | None:
    """Mean time per output token after the first; None for a single token, or when all came in one piece."""
    first, last, tokens = result.first_token_s, result.last_token_s, result.output_tokens or 0
    if first is None or last is None or last <= first or tokens < 2:
        return None
    return (last - first) / (tokens - 1)


def rounded(value: float | np.floating[Any] | None, digits: int = 4) -> float | None:
    """A Python float with that many decimals; None for what JSON cannot hold (NaN, infinity)."""
    return None if value is None or not np.isfinite(value) else round(float(value), digits)
