"""What is to be measured: the points of a profile at a depth, their keys, and how long they take."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners import drafters, model, prompts, provenance
from runners.engines import command, place_field
from runners.ledger import Ledger, cell_key
from runners.profile import Profile

WARM_UP_TOKENS = 16


@dataclass(frozen=True)
class Point:
    """One cell to measure, before it has a key."""

    workload: str
    concurrency: int
    repeat: int
    round: int
    requests: int

    def prompts(self, prompt_set: prompts.PromptSet) -> list[prompts.Prompt]:
        """The same prompts for every configuration, others in the next repeat."""
        return prompt_set.take(self.requests, self.repeat * self.requests)


def points(profile: Profile, depth: str | None, configuration: str | None = None) -> list[Point]:
    """Every point of a configuration (of any that leaves none out), in the order they are measured: round,
    concurrency, repeat, prompt set.

    A round is one server start of each configuration in turn, so repeats are interleaved (ABCABC) as far
    as starts allow; inside a round a concurrency's points stand together, so that one warm-up serves them.
    """
    chosen = profile.depth(depth)
    only = profile.configuration(configuration).prompt_sets if configuration else None
    return [
        Point(workload, concurrency, repeat, round_, chosen.requests[concurrency])
        for round_ in range(chosen.rounds)
        for concurrency in profile.workload.concurrencies
        for repeat in range(round_, chosen.repeats[concurrency], chosen.rounds)
        for workload in only or profile.workload.prompt_sets
    ]


def key_facts(profile: Profile, configuration: str, point: Point) -> dict[str, Any]:
    """All that determines a cell. Paths are neutral and the port is left out: they change nothing measured."""
    chosen = profile.configuration(configuration)
    files = model.planned_files(profile, chosen.drafter)
    line = command(profile, configuration, files, port=0)
    spec = profile.engines[chosen.engine]
    # A folder's name says nothing of its weights; what is made carries a hash in its path already.
    published = chosen.drafter and profile.drafters[chosen.drafter].path is not None
    drafter = {"drafter": drafters.digest(profile, chosen.drafter)} if published else {}
    # An engine with slots: each place of the loop keeps its own.
    field = place_field(profile, configuration, point.concurrency)
    sometimes = drafter | ({"place_field": field} if field else {})
    return sometimes | {
        "profile": profile.name,
        "configuration": configuration,
        "engine": chosen.engine,
        "engine_version": spec.version,
        "argv": provenance.without_home(" ".join(line.argv[1:] if not chosen.attach else [])),
        "env": line.env,
        "attach": chosen.attach.url if chosen.attach else None,
        "target": profile.target.file_sha256 or profile.target.path,
        "prompts": prompts.load(point.workload).sha256,
        "concurrency": point.concurrency,
        "requests": point.requests,
        "repeat": point.repeat,
        "output_tokens": profile.workload.output_tokens,
        "temperature": profile.workload.temperature,
        "machine": provenance.machine_id(),
    }


def key(profile: Profile, configuration: str, point: Point) -> str:
    return cell_key(key_facts(profile, configuration, point))


def missing(
    profile: Profile, configuration: str, depth: str | None, runs: Path, round_: int | None = None
) -> list[Point]:
    """The points without a finished cell, of one round or of all."""
    done = Ledger(runs / profile.name / configuration).finished()
    wanted = [p for p in points(profile, depth, configuration) if round_ is None or p.round == round_]
    return [p for p in wanted if key(profile, configuration, p) not in done]


def label(configuration: str, point: Point) -> str:
    """A cell's name on the progress line and in the event file."""
    return f"{configuration} · {point.workload} · C={point.concurrency} · repeat {point.repeat}"


@dataclass(frozen=True)
class Estimate:
    """Seconds, by what they are spent on; `basis` says where they come from."""

    cells: float
    warm_ups: float
    starts: float
    basis: str

    @property
    def total(self) -> float:
        return self.cells + self.warm_ups + self.starts


class Clock:
    """Expected seconds of cells and starts: from earlier runs of this profile where there are any."""

    def __init__(self, profile: Profile, *runs: Path):
        self._profile = profile
        self._cells: dict[tuple, list[tuple[int, float]]] = {}
        self._starts: dict[str, float] = {}
        for root in runs:
            for configuration in profile.configurations:
                ledger = Ledger(root / profile.name / configuration)
                for row in ledger.rows():
                    if row["status"] == "ok":
                        place = (configuration, row["workload"], row["concurrency"])
                        self._cells.setdefault(place, []).append((row["output_tokens"], row["seconds"]))
                for start in ledger.starts():
                    self._starts[configuration] = start["ready_seconds"]

    def known(self) -> bool:
        return bool(self._cells)

    def cell(self, configuration: str, point: Point) -> float:
        tokens = point.requests * self._profile.workload.output_tokens
        earlier = self._cells.get((configuration, point.workload, point.concurrency))
        if earlier:
            return tokens * sum(s for _, s in earlier) / max(sum(n for n, _ in earlier), 1)
        speed = self._profile.timing.stream_tokens_per_second.get(self._engine(configuration), 30)
        # Before anything is measured: streams share the machine down to a third of their lone speed.
        return tokens / (speed * max(1.0, point.concurrency / 3))

    def warm_up(self, configuration: str, point: Point) -> float:
        tokens = point.requests * self._profile.workload.output_tokens
        return self.cell(configuration, point) * min(point.concurrency, 4) * WARM_UP_TOKENS / max(tokens, 1)

    def start(self, configuration: str) -> float:
        assumed = self._profile.timing.start_seconds.get(self._engine(configuration), 60)
        return self._starts.get(configuration, assumed)

    def _engine(self, configuration: str) -> str:
        return self._profile.configuration(configuration).engine


def estimate(profile: Profile, depth: str | None, runs: Path, clock: Clock) -> dict[str, Estimate]:
    """Configuration -> seconds still to spend, finished cells left out."""
    found = {}
    for configuration, chosen in profile.configurations.items():
        todo = missing(profile, configuration, depth, runs)
        blocks = {(p.round, p.concurrency): p for p in todo}
        starts = len({p.round for p in todo}) if chosen.attach is None else 0
        found[configuration] = Estimate(
            cells=sum(clock.cell(configuration, p) for p in todo),
            warm_ups=sum(clock.warm_up(configuration, p) for p in blocks.values()),
            starts=starts * clock.start(configuration),
            basis="earlier runs" if clock.known() else "the profile's assumptions",
        )
    return found
