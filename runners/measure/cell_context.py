"""What one configuration's cells are measured with: its prompts, what its answers are compared with, its counters."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx

from runners.core import progress
from runners.core.errors import UserError
from runners.engines import http
from runners.engines.registry import engine
from runners.measure import reference_answers
from runners.measure.base_answers import BaseAnswers, Text, of_ledger
from runners.measure.client import Job, body
from runners.measure.ledger import Ledger
from runners.measure.machine_state import MachineState
from runners.measure.window import ramp_lengths
from runners.profiles import methods, points, prompt_files
from runners.profiles.gate_limits import Gates
from runners.profiles.points import Point
from runners.profiles.profile import Profile
from runners.profiles.prompts import Prompt, PromptSet
from runners.profiles.schema import Configuration
from runners.readers.records import Counters
from runners.readers.registry import reader
from runners.serve import model_files
from runners.serve.attached_server import request_headers

SETTLE_SECONDS = 5.0  # the longest wait for a server to come to rest


@dataclass
class CellContext:
    """What all cells of one configuration share. `base_answers` and `machine` grow with the cells that are measured."""

    profile: Profile
    name: str  # the configuration's
    preset: str | None  # how many repeats and requests; None is the profile's default
    ledger: Ledger
    prompt_sets: dict[str, PromptSet]
    reader: ModuleType  # of the engine's log and metrics
    request_fields: dict[str, Any] = field(default_factory=dict)  # the engine's own and the profile's
    headers: dict[str, str] = field(default_factory=dict, repr=False)  # of each request; they may hold a key
    reference_texts: dict[str, list[Text]] = field(default_factory=dict)  # prompt id -> the reference model's answer
    base: str | None = None  # the configuration of the same engine without speculation
    base_answers: BaseAnswers = field(default_factory=BaseAnswers)  # what it answered in cells that are ok
    machine_gflops: float | None = None  # machine_speed.gflops, before this server started
    machine: MachineState = field(default_factory=lambda: MachineState(Gates()))  # one for all of a campaign
    # One client for all polls: making one costs as much CPU as several tokens of a small model.
    _client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=5, trust_env=False), repr=False)

    @property
    def chosen(self) -> Configuration:
        return self.profile.configuration(self.name)

    @property
    def method(self) -> str:
        """How this configuration drafts; "none" without speculation."""
        return self.profile.method_of(self.name)

    @property
    def drafts(self) -> bool:
        """Does this configuration speculate, by its `method` or by its flags?"""
        return self.method != "none"

    @property
    def output_tokens(self) -> int:
        """Tokens of a timed answer."""
        return self.profile.output_tokens(self.preset)

    @property
    def drafts_every_step(self) -> bool:
        """Has each step a draft for certain? An n-gram drafter may find nothing to draft."""
        return bool(methods.method(self.method).every_step)

    @property
    def counts_in_metrics(self) -> bool:
        """Does the engine export its counters? SGLang prints them in its log, and its gauges are stale at rest."""
        return engine(self.chosen.engine).counters_in_metrics

    def read_base_answers(self) -> None:
        """Take what the base has answered until now from its ledger."""
        if self.base is not None and self.base != self.name:
            self.base_answers = of_ledger(Ledger(self.ledger.folder.parent / self.base))

    def jobs(self, to_send: Iterable[Prompt], output_tokens: int) -> list[Job]:
        """A request for each prompt, in this engine's form."""
        # An attached server may have a name of its own for the target.
        model = (self.chosen.attach.model if self.chosen.attach else None) or self.profile.target.name
        workload, more = self.profile.workload, self.request_fields
        temperature, ends = workload.temperature, workload.ends
        return [
            Job(p.id, body(model, list(p.messages), output_tokens, temperature, more | p.fields, ends)) for p in to_send
        ]

    def ramp(self, point: Point) -> list[Job]:
        """The requests that keep the places before the window opens, short ones first."""
        prompts = points.ramp_prompts(self.prompt_sets[point.workload], point.concurrency)
        lengths = ramp_lengths(point.concurrency, self.output_tokens)
        return [job for prompt, tokens in zip(prompts, lengths, strict=True) for job in self.jobs([prompt], tokens)]

    def timed(self, point: Point) -> list[Job]:
        """The requests of the window, in their order: each block goes on where the last one of its point ended."""
        prompts = points.timed_prompts(self.profile, self.preset, self.prompt_sets[point.workload], point.seed)
        first = point.repeat * point.requests % len(prompts)
        return self.jobs([*prompts[first:], *prompts[:first]], self.output_tokens)

    def counters(self, base_url: str) -> Counters | None:
        """The engine's counters now; None when it does not answer, or not with counters."""
        try:
            response = http.get(self._client, f"{base_url}/metrics", self.headers | {"Connection": "close"})
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
        if response.status != 200:
            return None
        try:
            found: Counters = self.reader.read_counters(response.text)
        except UserError:  # another program's page
            return None
        return found

    def settled_counters(self, base_url: str) -> Counters | None:
        """Counters once nothing runs and nothing waits, so that the last step of the last request is in them.

        After SETTLE_SECONDS they are returned as they are: the gates then say what still ran.
        """
        until = time.monotonic() + SETTLE_SECONDS
        found = self.counters(base_url)
        while found is not None and (found.running or found.queued) and time.monotonic() < until:
            time.sleep(0.1)
            found = self.counters(base_url)
        return found


def prepare(profile: Profile, name: str, preset: str | None, runs: Path) -> CellContext:
    """The context of a configuration's cells: reads its prompts, the base's answers and the reference model's.

    Raises UserError where the profile asks for a reference model and its target has no folder of weights.
    """
    workload = profile.workload
    chosen = profile.configuration(name)
    asked = chosen.prompt_sets or workload.prompt_sets
    prompt_sets = {s: prompt_files.load(s, workload.prompt_files) for s in asked}
    context = CellContext(
        profile,
        name,
        preset,
        Ledger(runs / profile.name / name),
        prompt_sets,
        reader(chosen.engine),
        request_fields=request_fields(profile, name),
        headers=request_headers(chosen.attach),
        reference_texts=reference_texts(profile, preset, prompt_sets),
        base=profile.base_of(name),
        machine=MachineState(profile.gates),
    )
    context.read_base_answers()
    return context


def request_fields(profile: Profile, name: str) -> dict[str, Any]:
    """What a request holds beside the usual fields: its engine's, the profile's, those of an attached server alone."""
    chosen = profile.configuration(name)
    own = chosen.attach.body if chosen.attach else {}
    return dict(engine(chosen.engine).request_fields) | profile.workload.body | own


def reference_texts(profile: Profile, preset: str | None, names: Iterable[str]) -> dict[str, list[Text]]:
    """The reference model's answer to every prompt of these sets that may be timed; none where the profile compares
    with none. They are made once a machine: minutes, which must not fall into a campaign.
    """
    # Its answers are greedy, and to messages alone: nothing to compare others with.
    workload = profile.workload
    if profile.gates.equal_to_reference_floor is None or workload.temperature > 0 or workload.body:
        return {}
    folder = model_files.files(profile, None, progress.say).folder
    if folder is None:
        raise UserError(
            f"Profile {profile.name}: `equal_to_reference_floor` needs a target with a Hugging Face folder."
        )
    sets = [prompt_files.load(name, workload.prompt_files) for name in names]
    needed = {p.id: p for found in sets for p in points.timed_pool(profile, found) if p.plain}
    with progress.span("reference"):
        found = reference_answers.answers(folder, needed.values(), profile.output_tokens(preset), progress.say)
    return {prompt: [Text(text)] for prompt, text in found.items()}
