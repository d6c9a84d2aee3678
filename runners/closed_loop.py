"""A closed loop on one engine, played step by step: what a decoding request shares its steps with.

A forecast of a point that nobody measured needs two things besides the cost of a step: how many requests decode at
once (fewer than the concurrency while others wait for their prompt to be read), and how many prompt tokens of other
requests are read inside a decoding request's steps, which its TPOT pays for. Both follow from the load's shape.
"""

from collections.abc import Callable
from dataclasses import dataclass

# Prompt tokens that fit into one step: the default of vLLM's server (vllm/engine/arg_utils.py, on a CPU) and of
# llama.cpp (n_batch). It only tells where a burst's prompts do not fit into one step together.
PREFILL_TOKENS = 2048
TOGETHER_S = 0.02  # first tokens of one step reach the client within this


@dataclass(frozen=True)
class Load:
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


def play(step_ms: Callable[[float, float], float], load: Load, length: float, budget: int = PREFILL_TOKENS) -> Seen:
    """Play the load: step_ms(batch, prefill) is a step's duration, length the tokens that a request gains in a step.

    Prompts are read first come first served, in parts where they do not fit. The first one is alone in its step: an
    idle engine begins with whatever came first.
    """
    if load.output <= 1:  # no decode step at all
        return Seen(float(min(load.concurrency, load.requests)), 0.0)
    waiting = [load.prompt] * min(load.concurrency, load.requests)
    unsent = load.requests - len(waiting)
    left: list[float] = []  # tokens that each decoding request still has to write
    time = steps = batches = prefills = 0.0
    first = True
    while waiting or left:
        batch, read, begun = len(left), 0.0, 0
        while waiting and read < budget:
            part = min(waiting[0], budget - read)
            read += part
            waiting[0] -= part
            if waiting[0] <= 0:
                waiting.pop(0)
                begun += 1
            if first:
                first = False
                break
        duration = step_ms(batch, read)
        time += duration * batch
        steps += batch
        batches += duration * batch * batch
        prefills += read * batch
        left = [tokens - length for tokens in left]
        ended = sum(tokens <= 1e-9 for tokens in left)
        left = [tokens for tokens in left if tokens > 1e-9]
        sent = min(ended, unsent)
        unsent -= sent
        waiting += [load.prompt] * sent
        left += [load.output - 1] * begun  # the prompt's own step yields the first token
    return Seen(batches / time, prefills / steps)


def measured(first_token_s, last_token_s, prompt_tokens, output_tokens, length: float) -> Seen:
    """The same two figures from a cell's requests (arrays of one cell): seconds, seconds, tokens, tokens.

    Another's prompt counts for a request that was decoding when that other's first token came. A prompt that was read
    together with the request's own brings its first token at the same moment: that one does not count.
    """
    decoding = last_token_s - first_token_s
    if not (decoding > 0).any():
        return Seen(float(len(decoding)), 0.0)
    shared = last_token_s[:, None].clip(max=last_token_s[None]) - first_token_s[:, None].clip(min=first_token_s[None])
    batch = shared.clip(min=0).sum() / decoding.sum()
    inside = (first_token_s[None] > first_token_s[:, None] + TOGETHER_S) & (first_token_s[None] < last_token_s[:, None])
    steps = (output_tokens - 1).sum() / length
    return Seen(float(batch), float((inside * prompt_tokens[None]).sum() / steps) if steps > 0 else 0.0)
