"""The two servers of `specverdict ask`: who they are, what each request to them holds, how fast a stream is."""

import argparse
import re
from dataclasses import asdict, dataclass
from typing import Any

from runners.core import redact
from runners.core.errors import UserError
from runners.core.validation import validated
from runners.engines.registry import engine
from runners.measure.probe import Probe, probe
from runners.profiles import methods, request_fields
from runners.profiles.attach import Attach
from runners.profiles.two_servers import BASE, SPEC, Side
from runners.serve.attached_server import request_headers
from runners.serve.server_identity import Identity, identify

TIMEOUT_S = 120.0  # of the first request: a server may compile or load on it


@dataclass(frozen=True)
class Asked:
    """One of the two: who it is, its configuration's words, and what its first answer showed."""

    identity: Identity
    side: Side
    probe: Probe


@dataclass(frozen=True)
class Servers:
    """Both, and what a person should know of them."""

    base: Asked
    spec: Asked
    notes: tuple[str, ...]
    body: dict[str, Any]  # what a request to either holds beside the usual fields
    temperature: float

    @property
    def version(self) -> str:
        """Of the engine; both where they differ."""
        found = dict.fromkeys(a.identity.facts.version or "unknown" for a in (self.base, self.spec))
        return ", ".join(found)

    @property
    def ends(self) -> str:
        """How answers end: with equally many tokens where both servers take that."""
        return "natural" if "natural" in (self.base.probe.ends, self.spec.probe.ends) else "fixed"

    @property
    def tokens_per_second(self) -> float:
        """Of one stream of the slower one."""
        return min(self.base.probe.tokens_per_second, self.spec.probe.tokens_per_second)

    def as_json(self) -> dict[str, Any]:
        """Each side's address, engine, model and what it says of itself."""
        return {
            name: {"url": a.identity.url, "engine": a.identity.engine, "found_by": a.identity.found_by}
            | {"model": a.identity.model, "metrics": a.identity.counters is not None}
            | asdict(a.identity.facts)
            for name, a in ((BASE, self.base), (SPEC, self.spec))
        }


def look(args: argparse.Namespace) -> Servers:
    """Find both servers and ask each once. UserError, in one sentence, for what keeps the question from being asked."""
    common, temperature = _common_fields(args.body)
    for name in (BASE, SPEC):
        _refuse_ours(f"--{name}-body", getattr(args, f"{name}_body"))
    found = {name: _look(name, args, common) for name in (BASE, SPEC)}
    base, spec = found[BASE], found[SPEC]
    _comparable(base, spec)
    return Servers(base, spec, tuple(_notes(base, spec)), common, temperature)


def _common_fields(body: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """(--body without the temperature, the temperature): it decides which gates judge the texts."""
    common = {name: value for name, value in body.items() if name != "temperature"}
    _refuse_ours("--body", common)
    temperature = body.get("temperature", 0.0)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or temperature < 0:
        raise UserError(f"--body: `temperature` must be a number >= 0, and it is {temperature!r}.")
    return common, float(temperature)


def _refuse_ours(option: str, body: dict[str, Any]) -> None:
    for name in body:
        if name in request_fields.OURS:
            raise UserError(f"{option}: `{name}` is not set here: {request_fields.OURS[name]}.")


def _look(name: str, args: argparse.Namespace, common: dict[str, Any]) -> Asked:
    """Who answers at --base or --spec, and its answer to one request."""
    headers, own = dict(args.header), getattr(args, f"{name}_body")
    if args.keep:
        _refuse_secrets(headers)
    address = args.base if name == BASE else args.spec
    given = {"url": address if "://" in address else f"http://{address}", "api_key_env": args.api_key_env}
    attach = validated(Attach, given | {"headers": headers, "body": own}, f"--{name}", "the address")
    sent = request_headers(attach)
    identity = identify(attach.url, sent, args.engine, args.model)
    kind, facts = engine(identity.engine), identity.facts
    first = probe(attach.url, sent, identity.model, dict(kind.request_fields) | common | own, TIMEOUT_S)
    method = "none" if name == BASE else kind.known_as(facts.method) if facts.method else methods.UNNAMED
    side = Side(
        url=attach.url,
        title=f"{kind.title} {'without' if name == BASE else 'with'} speculation, as it runs at {attach.url}",
        model=identity.model,
        cap=facts.max_running_requests or max(args.concurrency),
        method=method,
        k=None if name == BASE else facts.k,
        api_key_env=args.api_key_env,
        headers=headers,
        body=own,
    )
    return Asked(identity, side, first)


def _refuse_secrets(headers: dict[str, str]) -> None:
    """A profile that is kept holds no secret."""
    for name, value in headers.items():
        secret = re.fullmatch(r"authorization|cookie", name, re.IGNORECASE) or redact.SECRET.search(name)
        if secret and "${" not in value:
            raise UserError(
                f"--keep writes header {name} into a profile: give its value as ${{VARIABLE}}, or use --api-key-env."
            )


def _comparable(base: Asked, spec: Asked) -> None:
    """UserError where the ratio would not be one of speculation."""
    a, b = base.identity, spec.identity
    if (a.url, base.side.body) == (b.url, spec.side.body):
        raise UserError(
            "--base and --spec are one server: give two addresses, or switch speculation off in its requests "
            "(--base-body, such as '{\"speculative.n_max\": 0}' for llama.cpp)."
        )
    if a.engine != b.engine:
        titles = " and ".join(engine(x.engine).title for x in (a, b))
        raise UserError(
            f"The two run {titles}: their ratio would compare engines too; start both with one engine, or name it "
            "with --engine where it was not recognised."
        )
    if a.facts.drafts and b.facts.drafts is False:
        raise UserError(f"{a.url} speculates and {b.url} does not: exchange --base and --spec.")


def _notes(base: Asked, spec: Asked) -> list[str]:
    """What a person should know of the two before their figures."""
    found = []
    for name, one in ((BASE, base), (SPEC, spec)):
        who = one.identity
        version = f" {who.facts.version}" if who.facts.version else ""
        found.append(f"{name}: {engine(who.engine).title}{version}, {who.model}, at {who.url} (by {who.found_by})")
        if len(who.models) > 1:
            found.append(f"{name} serves {len(who.models)} models; {who.model} is asked (--model chooses)")
    a, b = base.identity, spec.identity
    if a.facts.version and b.facts.version and a.facts.version != b.facts.version:
        found.append(f"the versions differ ({a.facts.version}, {b.facts.version}): so may more than speculation")
    if a.facts.drafts and a.url != b.url:
        found.append("the base speculates too: the ratio compares two ways of speculating")
    if b.facts.drafts is False:
        found.append("by its own words the other server does not speculate: start it with a method, or expect no gain")
    if "natural" in (base.probe.ends, spec.probe.ends):
        found.append("answers end by themselves here (`ignore_eos` is not taken), so they differ in length")
    return found
