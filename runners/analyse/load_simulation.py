"""A closed loop on one engine, played step by step: what a decoding request shares its steps with.

A forecast of a point that nobody measured needs two things besides the cost of a step: how many requests decode at
once (fewer than the concurrency while others wait for their prompt to be read), and how many prompt tokens of other
requests are read inside a decoding request's steps, which its TPOT pays for. Both follow from the load's shape.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from runners.analyse import acceptance, intervals

# Prompt tokens that fit into one step: the default of vLLM's server (vllm/engine/arg_utils.py, on a CPU) and of
# llama.cpp (n_batch). It only tells where a burst's prompts do not fit into one step together.
PREFILL_TOKENS = 2048
TOGETHER_S = 0.02  # first tokens of one step reach the client within this
PLAYS = 8  # of a load whose steps yield a random number of tokens


@dataclass(frozen=True)
class LoadShape:
    """`requests` of `prompt` and `output` tokens each, `concurrency` of them at once."""

    requests: int
    concurrency: int
    prompt: float
    output: float


@dataclass(frozen=True)
class Seen:
    """What a decoding request sees, on average over its decode time: requests decoding at once (itself among them);
    and over its steps: prompt tokens of others read in a step.
    """

    batch: float
    prefill: float


def play(
    step_ms: Callable[[float, float], float], load: LoadShape, length: float, budget: int = PREFILL_TOKENS, k: int = 0
) -> Seen:
    """Play the load: step_ms(batch, prefill) is a step's duration, length the tokens that a request gains in a step.

    Prompts are read first come first served, in parts where they do not fit. An idle engine begins with whatever came
    first; a busy one has begun its next step when the successor of a request that ended reaches it. With k drafted
    tokens a step yields 1 to k + 1 at random, so requests that began together end apart and each one's successor is
    read beside the others: the mean of PLAYS such loads.
    """
    if load.output <= 1:  # no decode step at all
        return Seen(float(min(load.concurrency, load.requests)), 0.0)
    if not 1 < length < k + 1:  # the same in every step
        totals = _played(step_ms, load, lambda n: np.full(n, length), budget)
    else:
        chances, rng = (
            np.cumprod(np.full(k, acceptance.acceptance_for(length, k))),
            np.random.default_rng(intervals.SEED),
        )

        def gained(n: int) -> np.ndarray:
            return 1 + (rng.random(n)[:, None] < chances).sum(axis=1)

        totals = np.sum([_played(step_ms, load, gained, budget) for _ in range(PLAYS)], axis=0)
    time, steps, batches, prefills = totals
    return Seen(float(batches / time), float(prefills / steps))


def _played(
    step_ms: Callable[[float, float], float], load: LoadShape, gained: Callable[[int], np.ndarray], budget: int
) -> np.ndarray:
    """(decode time, decode steps, time-weighted batch, prompt tokens) summed over the requests of one play."""
    coming = min(load.concurrency, load.requests)  # sent, and not there yet when the step begins
    unsent = load.requests - coming
    waiting: list[float] = []  # prompt tokens still to read, of each request that is there
    left = np.empty(0)  # tokens that each decoding request still has to write
    totals = np.zeros(4)
    while waiting or coming or len(left):
        if not waiting and not len(left):  # idle: it begins with the first to come, and the others come meanwhile
            waiting, coming = [load.prompt], coming - 1
        batch, read, begun = len(left), 0.0, 0
        while waiting and read < budget:
            part = min(waiting[0], budget - read)
            read += part
            waiting[0] -= part
            if waiting[0] <= 0:
                waiting.pop(0)
                begun += 1
        duration = step_ms(batch, read)
        totals += batch * np.array([duration, 1, duration * batch, read])
        waiting += [load.prompt] * coming
        left = left - gained(batch)
        coming = min(int((left <= 1e-9).sum()), unsent)  # sent when this step's tokens are there: the next has begun
        unsent -= coming
        left = left[left > 1e-9]
        left = np.append(left, np.full(begun, load.output - 1))  # the prompt's own step yields the first token
    return totals


def measured(first_token_s, last_token_s, prompt_tokens, output_tokens, length: float) -> Seen:
    """The same two figures from a cell's requests (arrays of one cell): seconds, seconds, tokens, tokens.

    Another's prompt counts for a request that was decoding when that other's first token came, in its last step too,
    which brings both tokens at once. A prompt that was read together with the request's own brings its first token at
    the same moment as the request's: that one does not count.
    """
    decoding = last_token_s - first_token_s
    if not (decoding > 0).any():
        return Seen(float(len(decoding)), 0.0)
    shared = last_token_s[:, None].clip(max=last_token_s[None]) - first_token_s[:, None].clip(min=first_token_s[None])
    batch = shared.clip(min=0).sum() / decoding.sum()
    begun = first_token_s[None] > first_token_s[:, None] + TOGETHER_S
    inside = begun & (first_token_s[None] < last_token_s[:, None] + TOGETHER_S)
    steps = (output_tokens - 1).sum() / length
    return Seen(float(batch), float((inside * prompt_tokens[None]).sum() / steps) if steps > 0 else 0.0)
