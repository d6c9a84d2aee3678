"""The gates of a cell: each returns None, or the reason why the cell is void.

A void cell is kept and shown with its reason; it enters no average. What a gate looked at is stored
beside it, so that a reader can set another limit.
"""

import math

from runners.core.acceptance_math import accept_length
from runners.measure.client import CUT, OWN_ENDS, RAMP, TIMED, Result

HEADROOM = 5  # how many times its rate the client must be able to take
LIVELOCK_CORES = 0.5  # a server that waits uses far less, one that spins at least one core
SYNTHETIC_TOLERANCE = 0.1  # a cell holds some hundred steps: their mean scatters by a few per cent
LATE_MS = 50.0  # a reader notices no delay of the first token below it; latencies count from the intended time
TOKEN_TOLERANCE = 0.05  # engines count a token or two beside what they send; another client's load is more
OCCUPANCY = 0.95  # of C: mean requests in flight in a window


def completed(results: list[Result], wanted: int) -> str | None:
    """No request failed, and as many were asked as a window holds; the first error is quoted."""
    # Without the failed ones the others had the server to themselves: their speed is another concurrency's.
    failed = [r for r in results if r.error is not None]
    if failed:
        return f"{len(failed)} of {len(results)} requests failed, first: {failed[0].error}"
    asked = sum(r.role != RAMP for r in results)
    return None if asked >= wanted else f"{asked} of {wanted} requests were sent"


def produced_tokens(results: list[Result], server_cores: float | None) -> str | None:
    """A server that answers its health check and sends no token: spinning (livelock) or still (stall)?

    server_cores: CPU of the server's processes over the cell, in cores; None for an attached one.
    """
    if not results or server_cores is None or any(r.first_token_s is not None for r in results):
        return None
    if server_cores > LIVELOCK_CORES:
        return f"livelock: no token although the server used {server_cores:.1f} cores"
    return "stall: no token, and the server did nothing"


def counted(results: list[Result], expected_tokens: int, natural_ends: bool = False) -> str | None:
    """Every answer in full carries the engine's own token count (`usage`), and has as many tokens as were requested.

    natural_ends: an answer may end by itself, so that it has 1 to `expected_tokens` tokens. A ramp's answers are
    shorter by design, and a cut one has no end.
    """
    if any(r.count_source != "usage" or r.output_tokens is None for r in results if r.role != CUT):
        return "an answer carried no token count (`usage`)"
    whole = [r for r in results if r.role == TIMED]
    if natural_ends:
        wrong = [r for r in whole if not 1 <= (r.output_tokens or 0) <= expected_tokens]
        # Shorter, and the engine does not say that the answer ended: it was lost on the way.
        wrong += [r for r in whole if 1 <= (r.output_tokens or 0) < expected_tokens and r.finish_reason not in OWN_ENDS]
        what = f"1 to {expected_tokens} tokens long with an end of their own"
    else:
        wrong = [r for r in whole if r.output_tokens != expected_tokens]
        what = f"{expected_tokens} tokens long"
    if not wrong:
        return None
    first = f"{wrong[0].prompt_id} has {wrong[0].output_tokens}"
    return f"{len(wrong)} answers are not {what} ({first})" + ("" if natural_ends else ": ignore_eos did not hold")


def counts_agree(server_tokens: int | None, client_tokens: int, unseen: int = 0) -> str | None:
    """The server counted as many output tokens as the client received; more, and someone else used it too.

    unseen: tokens that a server may have made for requests that the client cut.
    """
    if server_tokens is None or abs(server_tokens - client_tokens) <= TOKEN_TOLERANCE * client_tokens + unseen:
        return None
    return f"the server counted {server_tokens} output tokens, the client {client_tokens}"


def synthetic_accept_length_held(wanted: float | None, steps: int | None, accepted: int | None) -> str | None:
    """Synthetic acceptance: the counters show the accept length that the engine was set to."""
    if wanted is None:
        return None
    if not steps or accepted is None:
        return f"synthetic acceptance was set to an accept length of {wanted:g}, but the counters show no step"
    # A release may ignore the setting: the model's own acceptance would then pass for the one that was set.
    shown = accept_length(steps, accepted)
    if abs(shown - wanted) > SYNTHETIC_TOLERANCE * wanted:
        return f"synthetic acceptance was set to an accept length of {wanted:g}, but the counters show {shown:.2f}"
    return None


def capped_at(concurrency: int, cap: int) -> int | None:
    """The server's cap on running requests where it is below the concurrency; None elsewhere."""
    return cap if cap < concurrency else None


def held_concurrency(peak: float | None, concurrency: int, cap: int) -> str | None:
    """The server's own gauge of running requests reached C, or its cap where that is lower, and no more."""
    expected = min(concurrency, cap)
    # A cell at C=16 whose server never ran 16 at once is a cell at another concurrency.
    if peak is None:
        return "the server reported no number of running requests"
    if peak > concurrency:
        return f"the server ran {peak:.0f} requests at once, more than the {concurrency} that were sent: it is shared"
    # The gauge is looked at some times a window: a look may fall between one request's end and the next one's start.
    return f"the server ran {peak:.0f} requests at once, not {expected}" if peak < OCCUPANCY * expected else None


def occupied(occupancy: float | None, concurrency: int, floor: float = OCCUPANCY) -> str | None:
    """Over the whole window C requests were in flight, or nearly: a load below C is another point's.

    occupancy: mean requests in flight over C; None where there is no window to speak of (cells before there were any).
    """
    if occupancy is None or occupancy >= floor:
        return None
    return f"mean requests in flight {occupancy * concurrency:.1f} of {concurrency} ({occupancy:.2f}), floor {floor:g}"


def client_kept_up(client_cpu_s: float, seconds: float) -> str | None:
    """The client could have taken HEADROOM times the rate: its own CPU time, times that, is under one core's."""
    if client_cpu_s * HEADROOM <= seconds:
        return None
    return f"the client itself used {client_cpu_s / seconds:.0%} of a core, too much to be sure it kept up"


def on_time(results: list[Result]) -> str | None:
    """The client of an open loop sent its requests when it should: the 99th percentile is at most LATE_MS late."""
    if not results:
        return "no request arrived in the window"
    late = sorted(1000 * (r.sent_s - r.intended_s) for r in results)
    # The nearest rank: of fewer than 100 requests the latest one.
    p99 = late[math.ceil(0.99 * len(late)) - 1]
    return f"the client sent requests late: {p99:.0f} ms at p99, limit {LATE_MS:.0f} ms" if p99 > LATE_MS else None


def time_passed(output_tokens: int, tpot_ms: float | None) -> str | None:
    """Time per output token is what a cell is measured for: tokens that all came at once give none.

    tpot_ms: milliseconds per output token after the first; None where no time passed.
    """
    if output_tokens > 1 and tpot_ms is None:
        return "no time passed between the first and the last token"
    return None
