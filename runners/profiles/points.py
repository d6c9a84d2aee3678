"""The points of a profile: every cell that a preset measures, before it has a key."""

from dataclasses import dataclass

from runners.profiles import prompts
from runners.profiles.profile import Profile


@dataclass(frozen=True)
class Point:
    """One cell to measure, before it has a key."""

    workload: str
    concurrency: int
    repeat: int
    round: int
    requests: int
    # Open loop (measure/open_loop.py): requests per second, for how long, and the seed of their arrivals. `requests` is
    # then how many arrive in that time, and `concurrency` what the server is warmed up for.
    rate: float | None = None
    seconds: float | None = None
    seed: int = 0

    def prompts(self, prompt_set: prompts.PromptSet) -> list[prompts.Prompt]:
        """The same prompts for every configuration, others in the next repeat."""
        return prompt_set.take(self.requests, self.repeat * self.requests)


def points(profile: Profile, preset: str | None, configuration: str | None = None) -> list[Point]:
    """Every point of a configuration (without one: of any that has all prompt sets), in the order in which they are
    measured: by round, concurrency, repeat, prompt set.

    A round is one server start of each configuration in turn: repeats are then interleaved (ABCABC) and a slow drift of
    the machine meets all configurations alike. Inside a round a concurrency's points follow each other, so that one
    warm-up serves them.
    """
    chosen = profile.preset(preset)
    only = profile.configuration(configuration).prompt_sets if configuration else None
    return [
        Point(workload, concurrency, repeat, round_, chosen.requests[concurrency])
        for round_ in range(chosen.rounds)
        for concurrency in profile.workload.concurrencies
        for repeat in range(round_, chosen.repeats[concurrency], chosen.rounds)
        for workload in only or profile.workload.prompt_sets
    ]


def label(configuration: str, point: Point) -> str:
    """A cell's name on the progress line and in the event file."""
    load = f"C={point.concurrency}" if point.rate is None else f"{point.rate:g} requests/s"
    return f"{configuration} · {point.workload} · {load} · repeat {point.repeat}"
