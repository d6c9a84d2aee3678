"""The target's own answers to the corpus's prompts, from llama.cpp's server, as token ids.

Resumable: each answer is one line, appended when it is whole; a second run asks only what is missing. Prompts are
in a shuffled order, so any prefix of the corpus is a fair sample of it.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx
import pandas as pd

from runners.core.errors import UserError
from runners.drafter.corpus import CorpusPrompt
from runners.engines.http import post
from runners.engines.llamacpp import prompt_ids
from runners.profiles.schema import Training

# Columns of the published table; token ids are the target's (int32).
COLUMNS = ["id", "kind", "subject", "part", "temperature", "seed", "prompt_tokens", "answer_tokens", "ended"]


def temperature_of(index: int, training: Training) -> float:
    """Greedy and sampled answers in turn, in the profile's proportions: what is served, and some variety."""
    return training.temperatures[index % len(training.temperatures)]


def read(path: Path) -> list[dict]:
    """The whole lines of an answers file; a torn last line (the machine went down) is dropped."""
    rows = []
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


def generate(
    base_url: str,
    prompts: list[CorpusPrompt],
    training: Training,
    path: Path,
    concurrency: int,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Ask for every missing answer, `concurrency` at a time; returns how many were added.

    Raises UserError when the server refuses or goes away; what was answered is kept.
    """
    known = {row["id"] for row in read(path)}
    todo = [(i, p) for i, p in enumerate(prompts) if p.id not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.is_file() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with open(path, "a", encoding="utf-8") as out:
        out.write("\n" if torn else "")
        try:
            asyncio.run(_generate(base_url, todo, training, out, concurrency, say))
        except httpx.HTTPError as error:
            raise UserError(
                f"The server stopped answering ({type(error).__name__}: {error}); answers so far are in {path}, "
                "run again to go on."
            ) from error
    return len(todo)


async def _generate(base_url: str, todo: list, training: Training, out, concurrency: int, say) -> None:
    waiting, began = iter(todo), time.monotonic()
    done = tokens = 0
    limits = httpx.Limits(max_keepalive_connections=0)  # llama.cpp closes idle connections
    async with httpx.AsyncClient(base_url=base_url, timeout=600, limits=limits, trust_env=False) as client:

        async def worker() -> None:
            nonlocal done, tokens
            for index, prompt in waiting:
                row = await _ask(client, index, prompt, training)
                out.write(json.dumps(row) + "\n")
                out.flush()
                done += 1
                tokens += len(row["answer_tokens"])
                if done % 50 == 0 or done == len(todo):
                    pace = (time.monotonic() - began) / done
                    left = pace * (len(todo) - done) / 60
                    say(f"{done}/{len(todo)} answers, {tokens} tokens, about {left:.0f} min left")

        await asyncio.gather(*(worker() for _ in range(concurrency)))


async def _ask(client: httpx.AsyncClient, index: int, prompt: CorpusPrompt, training: Training) -> dict:
    """One answer; the prompt goes through the server's own chat template and tokenizer."""
    ids = await prompt_ids(client, [{"role": "user", "content": prompt.text}])
    temperature = temperature_of(index, training)
    asked = {
        "prompt": ids,
        "n_predict": training.answer_tokens,
        "temperature": temperature,
        "seed": training.seed + index,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "return_tokens": True,
        "cache_prompt": False,
    }
    got = await post(client, "/completion", asked)
    return {
        "id": prompt.id,
        "kind": prompt.kind,
        "subject": prompt.subject,
        "part": prompt.part,
        "temperature": temperature,
        "seed": asked["seed"],
        "prompt_tokens": ids,
        "answer_tokens": got["tokens"],
        "ended": got.get("stop_type") == "eos",
    }


def table(rows: Iterable[dict]) -> pd.DataFrame:
    """The answers as they are published: one row an answer, lists of token ids, in an order that any first part of is a
    fair sample (by the hash of the id: sorted by id, a first part would hold one kind of prompt alone).
    """
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.sort_values("id", key=lambda ids: ids.map(_rank), ignore_index=True)


def _rank(id_: str) -> str:
    return hashlib.sha256(id_.encode()).hexdigest()
