"""The accept length that a drafter has when served: an engine's own counters and tokens over a prompt set.

The served side of replay.compare. Decoding is greedy and the end of text is ignored, so that every answer has the same
length. The tokens that come back are captured and replayed: both sides are then about the same text.
"""

import asyncio
import time
from dataclasses import dataclass

import httpx

from runners.core.errors import UserError
from runners.core.paths import BUILD
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.profiles.prompts import Prompt
from runners.readers.records import Counters
from runners.readers.registry import reader
from runners.serve import from_profile


@dataclass(frozen=True)
class Answer:
    """Token ids of one greedy answer and of the prompt as the server's chat template makes it."""

    prompt_id: str
    prompt_tokens: list[int]
    answer_tokens: list[int]


@dataclass(frozen=True)
class Served:
    """Answers in the prompts' order and what the engine counted for all of them.

    parted: how many answers came back as another text when requested again, some tokens longer. They keep the first
    text and lack those tokens.
    """

    answers: list[Answer]
    counters: Counters
    concurrency: int
    parted: int = 0


@dataclass(frozen=True)
class ServeSpec:
    """What to serve: one configuration, which answers every prompt with `output_tokens` tokens at each concurrency."""

    profile: Profile
    configuration: str
    prompts: list[Prompt]
    output_tokens: int
    concurrencies: list[int]


def serve_and_count(spec: ServeSpec) -> list[Served]:
    """Start the configuration once and ask every prompt at each concurrency; UserError when a request fails."""
    name = spec.configuration
    log = BUILD / "logs" / spec.profile.name / f"served-{name}-{time.strftime('%H%M%S')}.log"
    with from_profile.running(spec.profile, name, log) as server:
        try:
            return [_counted(spec, server.base_url, concurrency) for concurrency in spec.concurrencies]
        except httpx.HTTPError as error:
            raise UserError(f"{name}: the server stopped answering ({type(error).__name__}); see {log}.") from error


def _counted(spec: ServeSpec, base_url: str, concurrency: int) -> Served:
    """All prompts at one concurrency, with what the engine counted for them alone."""
    chosen = spec.profile.configuration(spec.configuration)
    read = reader(chosen.engine).read_counters
    before = _counters(base_url, read)
    answers = asyncio.run(_request_all(spec, base_url, spec.output_tokens, concurrency))
    time.sleep(0.5)  # the last step's counts come with the engine's next round
    counters = _counters(base_url, read).since(before)
    if not engine(chosen.engine).counts_cut_off:
        return Served(answers, counters, concurrency)
    # Such an engine (vLLM) verifies, and counts, a last chain that reaches beyond the output limit. So each answer is
    # requested again, K tokens longer and not counted: replay can then judge that chain too.
    longer = asyncio.run(_request_all(spec, base_url, spec.output_tokens + (chosen.k or 0), concurrency))
    same = [b.answer_tokens[: spec.output_tokens] == a.answer_tokens for a, b in zip(answers, longer, strict=True)]
    answers = [b if s else a for a, b, s in zip(answers, longer, same, strict=True)]
    return Served(answers, counters, concurrency, same.count(False))


def _counters(base_url: str, read) -> Counters:
    response = httpx.get(f"{base_url}/metrics", timeout=10, trust_env=False)
    if response.status_code != 200:
        raise UserError(f"{base_url}/metrics returns {response.status_code}; start the server with its metrics on.")
    return read(response.text)


async def _request_all(spec: ServeSpec, base_url: str, output_tokens: int, concurrency: int) -> list[Answer]:
    """An answer to each prompt, in the prompts' order, `concurrency` requests at a time."""
    kind = spec.profile.configuration(spec.configuration).engine
    request = engine(kind).ask_tokens
    if request is None:
        raise UserError(f"Replay needs an engine that returns token ids; {kind} is not known to. Use another engine.")
    waiting = iter(enumerate(spec.prompts))
    found: dict[int, Answer] = {}
    limits = httpx.Limits(max_keepalive_connections=0)  # llama.cpp closes idle connections
    timeout = spec.profile.request_timeout_seconds
    async with httpx.AsyncClient(base_url=base_url, timeout=timeout, limits=limits, trust_env=False) as client:

        async def worker() -> None:
            for index, prompt in waiting:
                ids = await request(client, spec.profile.target.name, list(prompt.messages), output_tokens)
                found[index] = Answer(prompt.id, *ids)

        await asyncio.gather(*(worker() for _ in range(concurrency)))
    return [found[i] for i in range(len(spec.prompts))]
