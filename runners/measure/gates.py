"""The gates of a cell: each returns None, or the reason why the cell is void.

A void cell is kept and shown with its reason; it enters no average. What a gate looked at is stored
beside it, so that a reader can set another limit.
"""

import math

from runners.core.acceptance_math import accept_length
from runners.measure.client import Result
from runners.profiles.schema import Gates

HEADROOM = 5  # how many times its rate the client must be able to take
MANY_ANSWERS = 16  # fewer answers are held to a lower floor of equal text
LIVELOCK_CORES = 0.5  # a server that waits uses far less, one that spins at least one core
SYNTHETIC_TOLERANCE = 0.1  # a cell holds some hundred steps: their mean scatters by a few per cent
LATE_MS = 50.0  # a reader notices no delay of the first token below it; latencies count from the intended time
TOKEN_TOLERANCE = 0.05  # engines count a token or two beside what they send; another client's load is more
NOT_QUIET = "the machine was not quiet"


def completed(results: list[Result], sent: int) -> str | None:
    """Every request was sent and answered without an error; the first error is quoted."""
    # Without the failed ones the others had the server to themselves: their speed is another concurrency's.
    failed = [r for r in results if r.error is not None]
    if failed:
        return f"{len(failed)} of {sent} requests failed, first: {failed[0].error}"
    return None if len(results) == sent else f"{len(results)} of {sent} requests were sent"


def produced_tokens(results: list[Result], server_cores: float | None) -> str | None:
    """A server that answers its health check and sends no token: spinning (livelock) or still (stall)?

    server_cores: CPU of the server's processes over the cell, in cores; None for an attached one.
    """
    if not results or server_cores is None or any(r.first_token_s is not None for r in results):
        return None
    if server_cores > LIVELOCK_CORES:
        return f"livelock: no token although the server used {server_cores:.1f} cores"
    return "stall: no token, and the server did nothing"


def counted(results: list[Result], expected_tokens: int) -> str | None:
    """Every answer carries the engine's own token count (`usage`), and has as many tokens as were requested."""
    if any(r.count_source != "usage" or r.output_tokens is None for r in results):
        return "an answer carried no token count (`usage`)"
    short = [r for r in results if r.output_tokens != expected_tokens]
    if short:
        first = f"{short[0].prompt_id} has {short[0].output_tokens}"
        return f"{len(short)} answers are not {expected_tokens} tokens long ({first}): ignore_eos did not hold"
    return None


def counts_agree(server_tokens: int | None, client_tokens: int) -> str | None:
    """The server counted as many output tokens as the client received; more, and someone else used it too."""
    if server_tokens is None or abs(server_tokens - client_tokens) <= TOKEN_TOLERANCE * client_tokens:
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


def distinct_bigrams(texts: list[str]) -> float | None:
    """Distinct neighbouring word pairs over all pairs, averaged over the answers; 1 means no repetition.

    None when no answer has four pairs: too few to call a repetition.
    """
    ratios = []
    for text in texts:
        words = text.split()
        pairs = list(zip(words, words[1:], strict=False))
        if len(pairs) >= 4:
            ratios.append(len(set(pairs)) / len(pairs))
    return sum(ratios) / len(ratios) if ratios else None


def language(ratio: float | None, floor: float) -> str | None:
    """Output is language, not a loop: a loop of two tokens inflates acceptance."""
    if ratio is None:
        return "the answers hold no words to judge"
    return f"answers repeat themselves: distinct bigrams {ratio:.2f}, floor {floor:.2f}" if ratio < floor else None


def prefix_share(text: str, other: str) -> float:
    """Characters the two have in common from the start, over the shorter one; 1.0 when both are empty."""
    shorter = min(len(text), len(other))
    if shorter == 0:
        return 1.0 if text == other else 0.0
    same = next((i for i in range(shorter) if text[i] != other[i]), shorter)
    return same / shorter


def equal_shares(results: list[Result], expected: dict[str, list[str]]) -> list[float]:
    """Share of equal prefix of each answer that has an expected text (`expected`: prompt id -> texts).

    Where several are expected, the nearest counts: INT4 kernels answer one prompt differently at another
    batch size, so a base configuration has more than one right answer of its own.
    """
    judged = [r for r in results if r.error is None and expected.get(r.prompt_id)]
    return [max(prefix_share(r.text, text) for text in expected[r.prompt_id]) for r in judged]


def same_text(shares: list[float], floor: float | None, whose: str) -> str | None:
    """At temperature 0 answers are equal up to numeric ties; a low share means another model is served.

    Judged on all answers of a configuration so far: one early tie among three prompts proves nothing, so the
    floor rises with their number and is full at MANY_ANSWERS.
    """
    if not shares or floor is None:
        return None
    share, limit = sum(shares) / len(shares), floor * min(1.0, len(shares) / MANY_ANSWERS)
    if share >= limit:
        return None
    return f"answers differ from {whose}: equal prefix {share:.2f} over {len(shares)} answers, floor {limit:.2f}"


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
    return f"the server ran {peak:.0f} requests at once, not {expected}" if peak < expected else None


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


def quiet(neighbour_cores: float, steal_share: float, limits: Gates) -> str | None:
    """Nobody else used the machine: neither other processes nor, in a virtual machine, its host."""
    if not limits.check_neighbours:
        return None
    if neighbour_cores > limits.neighbour_cores_ceiling:
        ceiling = limits.neighbour_cores_ceiling
        return f"{NOT_QUIET}: other work used {neighbour_cores:.2f} cores, ceiling {ceiling:.2f}"
    if steal_share > limits.steal_ceiling:
        return f"{NOT_QUIET}: steal {steal_share:.1%}, ceiling {limits.steal_ceiling:.0%}"
    return None


def time_passed(output_tokens: int, tpot_ms: float | None) -> str | None:
    """Time per output token is what a cell is measured for: tokens that all came at once give none.

    tpot_ms: milliseconds per output token after the first; None where no time passed.
    """
    if output_tokens > 1 and tpot_ms is None:
        return "no time passed between the first and the last token"
    return None
