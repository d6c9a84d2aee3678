"""What a new profile compares on this machine: configurations, loads, and the memory that they take."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from runners.commands import found_engines
from runners.commands.found_engines import Found
from runners.commands.found_models import Draft, Model
from runners.commands.preflight.machine import bits
from runners.core import gpus
from runners.engines.engine import Box, NewProfile
from runners.engines.registry import engine
from runners.profiles import methods, prompt_files, prompts

LEVELS, LEVELS_ON_CPU = (1, 4, 16, 64, 128), (1, 4, 16)
CONTEXT, CONTEXT_ON_CPU = 8192, 1024  # tokens of one request, where its prompts are not longer
ROOM = 1.5  # a prompt's tokens are counted without its tokenizer
OUTPUT, OUTPUT_ON_CPU = 256, 64  # tokens of an answer
SETS = ("chat", "edit")  # shipped prompts
K = 3  # draft tokens of a drafter, where nobody says


@dataclass(frozen=True)
class Wanted:
    """What is to be compared. methods: None for n-gram and the drafter's own; ks: of each method, empty for the usual.

    levels: concurrencies; None: those of such a machine. minutes: of a report; None: the preset's.
    """

    methods: Sequence[str] | None = None
    ks: Sequence[int] = ()
    prompt_sets: Sequence[str] = SETS
    levels: Sequence[int] | None = None
    minutes: float | None = None


@dataclass(frozen=True)
class Plan:
    """All that a profile is written from. target: None for an example."""

    name: str
    target: Model | None
    drafter: Draft | None
    engines: Mapping[str, Found]
    found: Sequence[gpus.Gpu]
    wanted: Wanted
    longest_prompt: int  # tokens, about

    @property
    def on_cpu(self) -> bool:
        return not self.found

    @property
    def output_tokens(self) -> int:
        return OUTPUT_ON_CPU if self.on_cpu else OUTPUT

    @property
    def levels(self) -> tuple[int, ...]:
        """Concurrencies, ascending."""
        return tuple(sorted(set(self.wanted.levels or (LEVELS_ON_CPU if self.on_cpu else LEVELS))))

    @property
    def cap(self) -> int:
        """On running requests: the highest concurrency."""
        return self.levels[-1]

    @property
    def context(self) -> int:
        """Tokens of one request: as many as its prompts need, never more than the model takes. Within the drafter's
        limit where they fit into it: beyond it an engine drafts nothing, or refuses to start.
        """
        needed = math.ceil((self.longest_prompt * ROOM + self.output_tokens) / 256) * 256
        room = max(needed, CONTEXT_ON_CPU if self.on_cpu else CONTEXT)
        limit = self.drafter.limit if self.drafter else None
        if limit is not None and needed <= limit:
            room = min(room, limit)
        return min(room, self.target.context_length) if self.target else room

    @property
    def cache_gib(self) -> int:
        """GiB of a KV cache in fp32 that holds all running requests."""
        if self.target is None or self.target.kv_width is None:
            return 4
        return math.ceil(1.1 * self.cap * self.context * self.target.layers * self.target.kv_width * 4 / 2**30)

    @property
    def servers_at_once(self) -> int:
        """2 where the memory holds base and another server, as far as the files tell; on GPUs nobody knows."""
        if self.target is None or not self.on_cpu:
            return 1
        weights = self.target.bytes_on_disk * 32 / bits(self.target.precision)
        if self.target.forms.folder is None:
            weights = self.target.bytes_on_disk
        room = psutil.virtual_memory().available
        return 2 if 2 * (weights * 1.2 + self.cache_gib * 2**30) < 0.8 * room else 1

    @property
    def box(self) -> Box:
        return Box(gpus=len(self.found), cores=found_engines.cores(), cache_gib=self.cache_gib)


def drafting(plan: Plan, kind: str) -> list[tuple[str, str, dict[str, Any]]]:
    """(name, title, further keys) of each configuration of an engine, its base first."""
    facts = new_profile(kind)
    cap = min(plan.cap, facts.most_at_once or plan.cap)
    common: dict[str, Any] = {"max_running_requests": cap}
    if (below := [c for c in plan.levels if c <= cap]) and len(below) < len(plan.levels):
        common["concurrencies"] = below
    made = [(f"{kind}-base", engine(kind).title, common)]
    for method in methods_of(plan):
        usual = facts.ngram_k if method == "ngram" else K
        more: dict[str, Any] = {"drafter": "own"} if _takes_drafter(plan, method) else {}
        more |= {"flags": dict(facts.ngram_flags)} if method == "ngram" and facts.ngram_flags else {}
        for k in plan.wanted.ks or (usual,):
            name = f"{kind}-{method}" + (f"-k{k}" if len(plan.wanted.ks) > 1 else "")
            title = f"{engine(kind).title} + {method}, K = {k}"
            made.append((name, title, {"method": method, "k": k} | more | common))
    return made


def methods_of(plan: Plan) -> list[str]:
    """What is asked for, else n-gram and what the drafter is made for."""
    if plan.wanted.methods:
        return list(dict.fromkeys(plan.wanted.methods))
    return ["ngram", *([plan.drafter.method] if plan.drafter else [])]


def _takes_drafter(plan: Plan, method: str) -> bool:
    if plan.drafter is None:
        return False
    return method == plan.drafter.method or methods.method(method).drafter == "needed"


def new_profile(kind: str) -> NewProfile:
    """What is known of an engine that a profile is written for (found_engines.find gives no other)."""
    facts = engine(kind).new_profile
    assert facts is not None, f"{kind} is not offered"
    return facts


def longest(prompt_sets: Sequence[str]) -> int:
    """Tokens of the longest prompt of these sets (names, or paths of files), about."""
    found = [prompt_files.read(s) if prompt_files.is_path(s) else prompts.load(s) for s in prompt_sets]
    return max(one.longest for one in found)
