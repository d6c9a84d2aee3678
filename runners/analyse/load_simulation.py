"""Simulates a load on one engine, step by step: what a decoding request shares its steps with.

The load is a closed loop: C requests at once, and each one that ends is followed by the next. A forecast of a point
that nobody measured needs two things besides the cost of a step: how many requests decode at once (fewer than C while
others wait for their prompt to be read), and how many prompt tokens of other requests are read inside a decoding
request's steps, which its TPOT pays for. Both follow from the shape of the load.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from runners.analyse import acceptance

# Prompt tokens that fit into one step: the default of vLLM's server (vllm/engine/arg_utils.py, on a CPU) and of
# llama.cpp (n_batch). It only matters where a burst's prompts do not fit into one step together.
PREFILL_TOKENS = 2048
SEED = 20_240
SIMULATIONS = 8  # of a load whose steps yield a random number of tokens
STEADY_WAVES = 12  # requests of a steady load over C; the first two waves and the last one are not counted
NOTHING_LEFT = 1e-9  # tokens; an answer's length less many fractional gains is seldom exactly 0

StepMs = Callable[[float, float], float]  # (requests decoding, prompt tokens read) -> milliseconds of the step


@dataclass(frozen=True)
class LoadShape:
    """`requests` of `prompt` and `output` tokens each, `concurrency` (C) of them at once.

    requests: None for a window in which C are always in flight, without a ramp and a drain.
    """

    requests: int | None
    concurrency: int
    prompt: float
    output: float


@dataclass(frozen=True)
class DecodeLoad:
    """What a decoding request shares its steps with, on average.

    batch: requests decoding at once, itself among them (mean over its decode time). prefill: prompt tokens of other
    requests read in a step (mean over its decode steps).
    """

    batch: float
    prefill: float


@dataclass
class _Totals:
    """Sums over all requests of a load and over the decode steps of each."""

    decode_ms: float = 0.0
    decode_steps: int = 0
    batch_ms: float = 0.0  # decode time, weighted with the batch it was spent in
    prefill: float = 0.0  # prompt tokens read in those decode steps

    def add_step(self, step_ms: float, batch: int, prefill: float) -> None:
        """Each of the `batch` decoding requests spends this step."""
        self.decode_ms += batch * step_ms
        self.decode_steps += batch
        self.batch_ms += batch * (step_ms * batch)
        self.prefill += batch * prefill

    def mean(self) -> DecodeLoad:
        return DecodeLoad(float(self.batch_ms / self.decode_ms), float(self.prefill / self.decode_steps))

    def __add__(self, other: "_Totals") -> "_Totals":
        return _Totals(
            self.decode_ms + other.decode_ms,
            self.decode_steps + other.decode_steps,
            self.batch_ms + other.batch_ms,
            self.prefill + other.prefill,
        )


class _ClosedLoop:
    """Where the requests of a load are between two steps of the engine.

    Arrays, not an object a request: a report simulates some hundred loads of thousands of steps each.
    """

    def __init__(self, load: LoadShape):
        self.load = load
        requests = load.concurrency * STEADY_WAVES if load.requests is None else load.requests
        self.arriving = min(load.concurrency, requests)  # sent, but not there when the next step begins
        self.unsent = requests - self.arriving
        self.waiting: list[float] = []  # prompt tokens still to read, of each request that is there
        self.tokens_left = np.empty(0)  # tokens that each decoding request still has to write

    @property
    def done(self) -> bool:
        return not (self.waiting or self.arriving or len(self.tokens_left))

    @property
    def counts(self) -> bool:
        """Whether this step is in the window: always, but in a steady load from the third wave to the last one sent."""
        return self.load.requests is not None or 0 < self.unsent <= self.load.concurrency * (STEADY_WAVES - 3)

    def start_if_idle(self) -> None:
        """An idle engine begins with the first request to come; the others arrive during its step."""
        if not self.waiting and not len(self.tokens_left):
            self.waiting, self.arriving = [self.load.prompt], self.arriving - 1

    def read_prompts(self, budget: float) -> tuple[float, int]:
        """(prompt tokens read in this step, prompts read to their end): first come first served, in parts."""
        read, ended = 0.0, 0
        while self.waiting and read < budget:
            part = min(self.waiting[0], budget - read)
            read += part
            self.waiting[0] -= part
            if self.waiting[0] <= 0:
                self.waiting.pop(0)
                ended += 1
        return read, ended

    def end_step(self, gained: np.ndarray, prompts_ended: int) -> None:
        """Each decoding request has gained its tokens; what was on its way has arrived."""
        self.waiting += [self.load.prompt] * self.arriving
        tokens_left = self.tokens_left - gained
        unfinished = tokens_left > NOTHING_LEFT
        # A successor is sent when these tokens reach the client: by then the engine has begun its next step.
        self.arriving = min(len(tokens_left) - int(unfinished.sum()), self.unsent)
        self.unsent -= self.arriving
        # The step that ends a prompt yields its request's first token.
        self.tokens_left = np.append(tokens_left[unfinished], np.full(prompts_ended, self.load.output - 1))


def simulate(
    step_ms: StepMs, load: LoadShape, accept_length: float, budget: int = PREFILL_TOKENS, k: int = 0
) -> DecodeLoad:
    """Simulate the load on an engine whose steps take step_ms(batch, prefill) and yield `accept_length` tokens.

    With K = k drafts a step yields 1 to K + 1 tokens at random, with the same chance for each draft: requests that
    began together then end apart, and each one's successor is read beside the others. The figures are those of
    SIMULATIONS such loads together, the same at each call. budget: prompt tokens that fit into one step.
    """
    if load.output <= 1:  # no decode step at all
        return DecodeLoad(float(min(load.concurrency, load.requests or load.concurrency)), 0.0)
    if load.concurrency == 1:  # a single stream shares its steps with nobody
        return DecodeLoad(1.0, 0.0)
    if not 1 < accept_length < k + 1:  # nothing or all is accepted: each step yields the same
        return _simulate_once(step_ms, load, lambda n: np.full(n, accept_length), budget).mean()
    # Chance that at least 1, 2, ..., K drafts are accepted; one random number decides how many.
    survival = np.cumprod(np.full(k, acceptance.acceptance_for(accept_length, k)))
    rng = np.random.default_rng(SEED)

    def gained(n: int) -> np.ndarray:
        return 1 + (rng.random(n)[:, None] < survival).sum(axis=1)

    totals = _Totals()
    for _ in range(SIMULATIONS if load.requests is not None else 1):  # a steady load averages over its own waves
        totals += _simulate_once(step_ms, load, gained, budget)
    return totals.mean()


def _simulate_once(step_ms: StepMs, load: LoadShape, gained: Callable[[int], np.ndarray], budget: int) -> _Totals:
    """One load from its first request to its last answer. gained(n): tokens that n requests gain in one step."""
    loop, totals = _ClosedLoop(load), _Totals()
    while not loop.done:
        loop.start_if_idle()
        batch = len(loop.tokens_left)
        prefill, prompts_ended = loop.read_prompts(budget)
        if loop.counts:
            totals.add_step(step_ms(batch, prefill), batch, prefill)
        loop.end_step(gained(batch), prompts_ended)
    return totals
