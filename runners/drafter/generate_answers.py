"""The target's own answers to the corpus's prompts, from llama.cpp's server, as token ids.

Resumable: an answer is one line, written when it is complete; a second run requests only what is missing. Prompts are
shuffled, so an interrupted run has a fair sample of them.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import httpx
import pandas as pd

from runners.core import secrets
from runners.core.errors import UserError
from runners.core.progress import Progress
from runners.drafter.corpus import CorpusPrompt
from runners.engines.http import post
from runners.engines.llamacpp import prompt_ids
from runners.profiles.schema import Training

# Columns of the published table; token ids are the target's (int32).
COLUMNS = ["id", "kind", "subject", "part", "temperature", "seed", "prompt_tokens", "answer_tokens", "ended"]


def temperature_of(index: int, training: Training) -> float:
    """The temperature of answer `index`. Greedy and sampled answers alternate: what is served, and some variety."""
    return training.temperatures[index % len(training.temperatures)]


def read(path: Path) -> list[dict]:
    """The rows of an answers file. A line that is not JSON is left out: a crash may leave half a line."""
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
    say: Progress = lambda _: None,
) -> int:
    """Request every missing answer, `concurrency` at a time; returns how many were added.

    UserError when the server refuses or stops; the answers so far are kept.
    """
    known = {row["id"] for row in read(path)}
    todo = [(i, p) for i, p in enumerate(prompts) if p.id not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    # After half a line, the next answer starts on a line of its own.
    torn = path.is_file() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with open(path, "a", encoding="utf-8") as out:
        out.write("\n" if torn else "")
        try:
            asyncio.run(_generate(base_url, todo, training, out, concurrency, say))
        except httpx.HTTPError as error:
            raise UserError(
                f"The server stopped answering ({type(error).__name__}: {error}); answers so far are in {path}, "
                "run again to continue."
            ) from error
    return len(todo)


async def _generate(
    base_url: str,
    todo: list[tuple[int, CorpusPrompt]],
    training: Training,
    out: TextIO,
    concurrency: int,
    say: Progress,
) -> None:
    waiting, began = iter(todo), time.monotonic()
    done = tokens = 0
    limits = httpx.Limits(max_keepalive_connections=0)  # llama.cpp closes idle connections
    async with httpx.AsyncClient(base_url=base_url, timeout=600, limits=limits, trust_env=False) as client:

        async def worker() -> None:
            nonlocal done, tokens
            for index, prompt in waiting:
                row = await _answer(client, index, prompt, training)
                out.write(secrets.masked(json.dumps(row)) + "\n")
                out.flush()
                done += 1
                tokens += len(row["answer_tokens"])
                if done % 50 == 0 or done == len(todo):
                    pace = (time.monotonic() - began) / done
                    left = pace * (len(todo) - done) / 60
                    say(f"{done}/{len(todo)} answers, {tokens} tokens, about {left:.0f} min left")

        await asyncio.gather(*(worker() for _ in range(concurrency)))


async def _answer(client: httpx.AsyncClient, index: int, prompt: CorpusPrompt, training: Training) -> dict:
    """One answer; the prompt goes through the server's own chat template and tokenizer."""
    ids = await prompt_ids(client, [{"role": "user", "content": prompt.text}])
    temperature = temperature_of(index, training)
    request = {
        "prompt": ids,
        "n_predict": training.answer_tokens,
        "temperature": temperature,
        "seed": training.seed + index,
        "top_k": 0,  # off, as top_p and min_p are: the target's own distribution is sampled
        "top_p": 1.0,
        "min_p": 0.0,
        "return_tokens": True,
        "cache_prompt": False,
    }
    response = await post(client, "/completion", request)
    return {
        "id": prompt.id,
        "kind": prompt.kind,
        "subject": prompt.subject,
        "part": prompt.part,
        "temperature": temperature,
        "seed": request["seed"],
        "prompt_tokens": ids,
        "answer_tokens": response["tokens"],
        "ended": response.get("stop_type") == "eos",
    }


def table(rows: Iterable[dict]) -> pd.DataFrame:
    """The answers as they are published: one row an answer, columns COLUMNS.

    Sorted by the hash of the id, so that the first rows are a fair sample. Sorted by the id itself, they would all be
    of one kind of prompt.
    """
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.sort_values("id", key=lambda ids: ids.map(_hash), ignore_index=True)


def _hash(id_: str) -> str:
    return hashlib.sha256(id_.encode()).hexdigest()
