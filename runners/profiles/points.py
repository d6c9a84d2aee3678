"""The points of a profile: what is compared with what, under which load."""

import random
from dataclasses import dataclass
from typing import NamedTuple

from runners.profiles.profile import Profile
from runners.profiles.prompts import Prompt, PromptSet


@dataclass(frozen=True)
class Point:
    """One load of a configuration, and which of its blocks this is."""

    workload: str
    concurrency: int
    repeat: int  # blocks of this point before this one, in its campaign
    round: int  # the start that it belongs to
    requests: int  # answers that end inside the window
    # Open loop (measure/open_loop.py): requests per second, and for how long. `requests` is then how many arrive in
    # that time, and `concurrency` what the server is warmed up for.
    rate: float | None = None
    seconds: float | None = None
    seed: int = 0  # of the prompts' order, and of the arrivals of an open loop


class Load(NamedTuple):
    """A point of a comparison: the same prompts at the same concurrency on both sides."""

    workload: str
    concurrency: int


class Comparison(NamedTuple):
    """Configurations that are measured side by side: a base and what is compared with it, or one alone."""

    base: str
    other: str | None = None

    @property
    def sides(self) -> tuple[str, ...]:
        return (self.base,) if self.other is None else (self.base, self.other)


def comparisons(profile: Profile, names: list[str]) -> list[Comparison]:
    """What must be measured side by side so that every two of these configurations can be compared.

    Each one with its base (which is measured even where it is not among the names), and the first base with each other
    one. A configuration without a base stands alone.
    """
    found = []
    bases: list[str] = []
    for name in names:
        base = profile.base_of(name) or name
        if base not in bases:
            bases.append(base)
        if base != name:
            found.append(Comparison(base, name))
    found += [Comparison(bases[0], base) for base in bases[1:]]
    lonely = [base for base in bases if not any(base in c.sides for c in found)]
    return found + [Comparison(base) for base in lonely]


def loads(profile: Profile, comparison: Comparison) -> list[Load]:
    """The points that all sides of a comparison have, by workload and concurrency."""
    workload, sides = profile.workload, [profile.configuration(side) for side in comparison.sides]
    return [
        Load(w, c)
        for w in workload.prompt_sets
        for c in workload.concurrencies
        if all(w in (s.prompt_sets or workload.prompt_sets) for s in sides)
        and all(c in (s.concurrencies or workload.concurrencies) for s in sides)
    ]


def timed_pool(profile: Profile, prompt_set: PromptSet) -> list[Prompt]:
    """The prompts that may be timed. The last ones of a set are the ramp's, so that no prompt is timed right
    after it was read.
    """
    kept_back = min(max(profile.workload.concurrencies), len(prompt_set) // 2)
    return list(prompt_set.prompts[: len(prompt_set) - kept_back])


def timed_prompts(profile: Profile, preset: str | None, prompt_set: PromptSet, seed: int) -> list[Prompt]:
    """The prompts that are timed, in an order of the campaign's own: the same at every concurrency."""
    prompts = timed_pool(profile, prompt_set)
    random.Random(f"{seed} {prompt_set.id}").shuffle(prompts)
    return prompts[: profile.preset(preset).prompts]


def ramp_prompts(prompt_set: PromptSet, concurrency: int) -> list[Prompt]:
    """The prompts that keep the places before the window opens: the last ones of the set."""
    return prompt_set.take(concurrency, max(len(prompt_set) - concurrency, 0))


def label(configuration: str, point: Point) -> str:
    """A cell's name on the progress line and in the event file."""
    load = f"C={point.concurrency}" if point.rate is None else f"{point.rate:g} requests/s"
    return f"{configuration} · {point.workload} · {load} · block {point.repeat}"
