"""Looking at the two servers of `specverdict ask`: each is found, or started once, and asked for one answer."""

import argparse
from pathlib import Path
from typing import Any

from runners.commands import ask_commands, ask_servers
from runners.commands.ask_servers import Asked, Servers
from runners.core import paths, secrets
from runners.core.errors import UserError
from runners.core.validation import validated
from runners.engines.registry import engine
from runners.measure.probe import probe
from runners.profiles import methods, request_fields
from runners.profiles.attach import Attach
from runners.profiles.two_servers import BASE, SPEC, Side
from runners.serve.attached_server import request_headers
from runners.serve.server_identity import Identity, identify

TIMEOUT_S = 120.0  # of the first request: a server may compile or load on it


def look(args: argparse.Namespace) -> Servers:
    """Find both servers and ask each once. UserError, in one sentence, for what keeps the question from being asked."""
    common, temperature = _common_fields(args.body)
    for name in (BASE, SPEC):
        _refuse_wrong_options(name, args)
    if args.keep:
        _refuse_secrets(args)
    if args.base_command and args.spec_command and (args.api_key_env or args.header):
        raise UserError("--api-key-env and --header go with the address of a server; leave them out.")
    found = {name: _look(name, args, common) for name in (BASE, SPEC)}
    base, spec = found[BASE], found[SPEC]
    ask_servers.must_compare(base, spec)
    return Servers(base, spec, tuple(ask_servers.notes(base, spec)), common, temperature)


def _common_fields(body: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """(--body without the temperature, the temperature): it decides which gates judge the texts."""
    common = {name: value for name, value in body.items() if name != "temperature"}
    _refuse_ours("--body", common)
    temperature = body.get("temperature", 0.0)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or temperature < 0:
        raise UserError(f"--body: `temperature` must be a number >= 0, and it is {temperature!r}.")
    return common, float(temperature)


def _refuse_wrong_options(name: str, args: argparse.Namespace) -> None:
    address, command, body = (getattr(args, option) for option in (name, f"{name}_command", f"{name}_body"))
    if (address is None) == (command is None):
        raise UserError(f"Give exactly one of --{name} and --{name}-command.")
    if command is not None and body:
        raise UserError(f"--{name}-body goes with the address of a server; write it into --{name}-command instead.")
    _refuse_ours(f"--{name}-body", body)


def _refuse_ours(option: str, body: dict[str, Any]) -> None:
    for name in body:
        if name in request_fields.OURS:
            raise UserError(f"{option}: `{name}` is not set here: {request_fields.OURS[name]}.")


def _look(name: str, args: argparse.Namespace, common: dict[str, Any]) -> Asked:
    command = getattr(args, f"{name}_command")
    return _at_address(name, args, common) if command is None else _by_command(name, args, command, common)


def _at_address(name: str, args: argparse.Namespace, common: dict[str, Any]) -> Asked:
    """Who answers at --base or --spec, and its answer to one request."""
    headers, own = dict(args.header), getattr(args, f"{name}_body")
    address = getattr(args, name)
    given = {"url": address if "://" in address else f"http://{address}", "api_key_env": args.api_key_env}
    attach = validated(Attach, given | {"headers": headers, "body": own}, f"--{name}", "the address")
    sent = request_headers(attach)
    identity = identify(attach.url, sent, args.engine, args.model)
    fields = dict(engine(identity.engine).request_fields) | common | own
    first = probe(attach.url, sent, identity.model, fields, TIMEOUT_S)
    place = {"url": attach.url, "api_key_env": args.api_key_env, "headers": headers, "body": own}
    return Asked(identity, _side(name, args, identity, f"as it runs at {attach.url}", place), first)


def _by_command(name: str, args: argparse.Namespace, command: str, common: dict[str, Any]) -> Asked:
    """The server that --base-command or --spec-command starts; it is down again afterwards."""
    log = Path(paths.BUILD / "logs" / "ask" / f"{name}.log")
    with ask_commands.started(f"--{name}-command", command, log) as server:
        identity = identify(server.base_url, {}, args.engine, args.model)
        fields = dict(engine(identity.engine).request_fields) | common
        first = probe(server.base_url, {}, identity.model, fields, TIMEOUT_S)
    side = _side(name, args, identity, "started by its command", {"command": command})
    return Asked(identity, side, first, server.ready_seconds)


def _side(name: str, args: argparse.Namespace, identity: Identity, where: str, place: dict[str, Any]) -> Side:
    kind, facts = engine(identity.engine), identity.facts
    method = "none" if name == BASE else kind.known_as(facts.method) if facts.method else methods.UNNAMED
    return Side(
        title=f"{kind.title} {'without' if name == BASE else 'with'} speculation, {where}",
        model=identity.model,
        cap=facts.max_running_requests or max(args.concurrency),
        method=method,
        k=None if name == BASE else facts.k,
        **place,
    )


def _refuse_secrets(args: argparse.Namespace) -> None:
    """A profile that is kept holds no secret."""
    for name, value in args.header:
        if secrets.is_name(name) and "${" not in value:
            raise UserError(
                f"--keep writes header {name} into a profile: give its value as ${{VARIABLE}}, or use --api-key-env."
            )
    for option in ("body", "base_body", "spec_body", "base_command", "spec_command"):
        given = getattr(args, option)
        if secrets.hidden(given, option) != given:
            told = option.replace("_", "-")
            raise UserError(f"--keep writes --{told} into a profile, and it holds a secret: leave --keep out.")
