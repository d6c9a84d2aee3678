"""A cell's speeds from the client's time stamps, as its row holds them."""

from typing import Any

import numpy as np

from runners.measure.client import Loop, Result


def speeds(loop: Loop) -> dict[str, Any]:
    """Speeds over the answers that came, and the client's own cost; None where no answer gives one.

    Names and units are those of cell_row.CellRow. Medians are over requests.
    """
    answered = [r for r in loop.results if r.error is None and r.output_tokens and r.first_token_s is not None]
    first = [r.first_token_s - r.sent_s for r in answered if r.first_token_s is not None]
    per_token = [seconds for r in answered if (seconds := seconds_per_token(r)) is not None]
    prompts = [r.prompt_tokens for r in answered if r.prompt_tokens is not None]
    # Of good answers only, over the whole time: a cell with failed requests is void, its speed is shown but not used.
    tokens = sum(int(r.output_tokens or 0) for r in answered)
    sources = {r.count_source for r in answered}
    return {
        "context_tokens": rounded(np.mean(prompts), 1) if prompts else None,
        "output_tokens": tokens,
        "seconds": rounded(loop.seconds),
        # All streams together, the ramps at both ends included: what a client of C streams gets.
        "output_tokens_per_second": rounded(tokens / loop.seconds, 3) if tokens else None,
        # Medians, so that one request that waited for a neighbour does not speak for the cell.
        "stream_tokens_per_second_p50": rounded(1 / np.median(per_token), 3) if per_token else None,
        "ttft_ms_p50": rounded(1e3 * np.median(first), 3) if first else None,
        "tpot_ms_p50": rounded(1e3 * np.median(per_token)) if per_token else None,
        "count_source": sources.pop() if len(sources) == 1 else None,
        "client_cpu_us_per_token": rounded(1e6 * loop.client_cpu_s / tokens, 1) if tokens else None,
    }


def seconds_per_token(result: Result) -> float | None:
    """Mean time per output token after the first; None for a single token, or when all came in one piece."""
    first, last, tokens = result.first_token_s, result.last_token_s, result.output_tokens or 0
    if first is None or last is None or last <= first or tokens < 2:
        return None
    return (last - first) / (tokens - 1)


def rounded(value: float | np.floating[Any] | None, digits: int = 4) -> float | None:
    """A Python float with that many decimals; None for what JSON cannot hold (NaN, infinity)."""
    return None if value is None or not np.isfinite(value) else round(float(value), digits)
