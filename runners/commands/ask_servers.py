"""The two servers of `specverdict ask` as they were found: can they be compared, and what should a person know?"""

from dataclasses import asdict, dataclass
from typing import Any

from runners.core import redact
from runners.core.errors import UserError
from runners.engines.registry import engine
from runners.measure.probe import Probe
from runners.profiles.two_servers import BASE, SPEC, Side
from runners.serve.server_identity import Identity


@dataclass(frozen=True)
class Asked:
    """One of the two: who it is, its configuration's words, and what its first answer showed.

    start_seconds: until it answered; 0 where it ran already.
    """

    identity: Identity
    side: Side
    probe: Probe
    start_seconds: float = 0.0

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return "started by its command" if self.side.command is not None else f"at {self.identity.url}"

    @property
    def shown_command(self) -> str | None:
        """Its command line without the value of a key."""
        command = self.side.command
        return None if command is None else " ".join(redact.masked_argv(command.split()))


@dataclass(frozen=True)
class Servers:
    """Both, and what a person should know of them."""

    base: Asked
    spec: Asked
    notes: tuple[str, ...]
    body: dict[str, Any]  # what a request to either holds beside the usual fields
    temperature: float

    @property
    def both(self) -> tuple[Asked, Asked]:
        return self.base, self.spec

    @property
    def version(self) -> str:
        """Of the engine; both where they differ."""
        return ", ".join(dict.fromkeys(one.identity.facts.version or "unknown" for one in self.both))

    @property
    def target(self) -> str:
        """The model's name: that of a server that is started anew, whose requests have no other."""
        return next((one for one in self.both if one.side.command is not None), self.base).identity.model

    @property
    def ends(self) -> str:
        """How answers end: with equally many tokens where both servers take that."""
        return "natural" if "natural" in [one.probe.ends for one in self.both] else "fixed"

    @property
    def tokens_per_second(self) -> float:
        """Of one stream of the slower one."""
        return min(one.probe.tokens_per_second for one in self.both)

    @property
    def start_seconds(self) -> float:
        """Until both are up, one after the other."""
        return sum(one.start_seconds for one in self.both)

    @property
    def started(self) -> bool:
        """Are servers started for the question, so that its intervals are over starts?"""
        return any(one.side.command is not None for one in self.both)

    def as_json(self) -> dict[str, Any]:
        """Each side's place, engine, model and what it says of itself."""
        return {
            name: {"url": one.side.url, "command": one.shown_command, "engine": one.identity.engine}
            | {"found_by": one.identity.found_by, "model": one.identity.model}
            | {"metrics": one.identity.counters is not None, **asdict(one.identity.facts)}
            for name, one in zip((BASE, SPEC), self.both, strict=True)
        }


def must_compare(base: Asked, spec: Asked) -> None:
    """UserError where the ratio would not be one of speculation."""
    a, b = base.identity, spec.identity
    if (base.side.url, base.side.command, base.side.body) == (spec.side.url, spec.side.command, spec.side.body):
        raise UserError(
            "--base and --spec are one server: give two, or switch speculation off in the requests of one of them "
            "(--base-body, such as '{\"speculative.n_max\": 0}' for llama.cpp)."
        )
    if a.engine != b.engine:
        titles = " and ".join(engine(x.engine).title for x in (a, b))
        raise UserError(
            f"The two run {titles}: their ratio would compare engines too; start both with one engine, or name it "
            "with --engine where it was not recognised."
        )
    if base.side.command is not None and spec.side.command is not None and a.model != b.model:
        raise UserError(f"The two serve `{a.model}` and `{b.model}`: give the model one name in both commands.")
    if a.facts.drafts and b.facts.drafts is False:
        raise UserError(f"The base ({base.place}) speculates and the other does not: exchange the two.")


def notes(base: Asked, spec: Asked) -> list[str]:
    """What a person should know of the two before their figures."""
    found = []
    for name, one in ((BASE, base), (SPEC, spec)):
        who = one.identity
        version = f" {who.facts.version}" if who.facts.version else ""
        found.append(f"{name}: {engine(who.engine).title}{version}, {who.model}, {one.place} (by {who.found_by})")
        if len(who.models) > 1:
            found.append(f"{name} serves {len(who.models)} models; {who.model} is asked (--model chooses)")
    a, b = base.identity, spec.identity
    if a.facts.version and b.facts.version and a.facts.version != b.facts.version:
        found.append(f"the versions differ ({a.facts.version}, {b.facts.version}): so may more than speculation")
    if a.facts.drafts and (a.url != b.url or not (base.side.body or spec.side.body)):
        found.append("the base speculates too: the ratio compares two ways of speculating")
    if b.facts.drafts is False:
        found.append("by its own words the other server does not speculate: start it with a method, or expect no gain")
    if "natural" in (base.probe.ends, spec.probe.ends):
        found.append("answers end by themselves here (`ignore_eos` is not taken), so they differ in length")
    return found
