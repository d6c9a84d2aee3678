"""What a drafter's accept length *is* when served: an engine's own counters and tokens over a prompt set.

The other side of replay (scripts/replay.py): the same prompts, greedy, end of text ignored; the tokens that came
back are captured and replayed, so that both sides speak about the same text.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

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

    `parted`: answers whose repetition, asked for some tokens more, was another text; they lack those tokens.
    """

    answers: list[Answer]
    counters: Counters
    concurrency: int
    parted: int = 0


def serve_and_count(
    profile: Profile, configuration: str, asked: list[Prompt], output_tokens: int, concurrencies: list[int]
) -> list[Served]:
    """Start the configuration once and ask every prompt at each concurrency; UserError when a request fails.

    Some engines verify, and count, a last chain that reaches beyond the output limit (`Engine.counts_cut_off`: vLLM);
    there each answer is asked for again, K tokens longer and not counted, so that replay can judge that chain too.
    """
    chosen = profile.configuration(configuration)
    log = BUILD / "logs" / profile.name / f"served-{configuration}-{time.strftime('%H%M%S')}.log"
    with from_profile.running(profile, configuration, Path(log)) as live:
        read = reader(chosen.engine).read_counters
        found = []
        for concurrency in concurrencies:
            before = _counters(live.base_url, read)
            try:
                got = asyncio.run(_ask_all(live.base_url, chosen.engine, profile, asked, output_tokens, concurrency))
                time.sleep(0.5)  # the last step's counts come with the engine's next round
                counted = _counters(live.base_url, read).since(before)
                parted = 0
                if engine(chosen.engine).counts_cut_off:
                    more = output_tokens + (chosen.k or 0)
                    longer = asyncio.run(_ask_all(live.base_url, chosen.engine, profile, asked, more, concurrency))
                    same = [
                        b.answer_tokens[:output_tokens] == a.answer_tokens for a, b in zip(got, longer, strict=True)
                    ]
                    got = [b if s else a for a, b, s in zip(got, longer, same, strict=True)]
                    parted = same.count(False)
            except httpx.HTTPError as error:
                raise UserError(
                    f"{configuration}: the server stopped answering ({type(error).__name__}); see {log}."
                ) from error
            found.append(Served(got, counted, concurrency, parted))
        return found


def _counters(base_url: str, read) -> Counters:
    answer = httpx.get(f"{base_url}/metrics", timeout=10, trust_env=False)
    if answer.status_code != 200:
        raise UserError(f"{base_url}/metrics answers {answer.status_code}; start the server with its metrics on.")
    return read(answer.text)


async def _ask_all(
    base_url: str, kind: str, profile: Profile, asked: list[Prompt], output_tokens: int, concurrency: int
) -> list[Answer]:
    ask = engine(kind).ask_tokens
    if ask is None:
        raise UserError(f"Replay asks an engine for token ids, and {kind} is not known to give them; use another.")
    waiting = iter(enumerate(asked))
    found: dict[int, Answer] = {}
    limits = httpx.Limits(max_keepalive_connections=0)
    timeout = profile.request_timeout_seconds
    async with httpx.AsyncClient(base_url=base_url, timeout=timeout, limits=limits, trust_env=False) as client:

        async def worker() -> None:
            for index, prompt in waiting:
                ids = await ask(client, profile.target.name, list(prompt.messages), output_tokens)
                found[index] = Answer(prompt.id, *ids)

        await asyncio.gather(*(worker() for _ in range(concurrency)))
    return [found[i] for i in range(len(asked))]
