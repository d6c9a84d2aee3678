"""Who answers at an address: the engine, its version, the model that it serves, and what it says of itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx

from runners.core.errors import UserError
from runners.core.one_line import one_line
from runners.engines import http
from runners.engines.engine import Engine, ServerFacts
from runners.engines.registry import all_engines, engine
from runners.readers.records import Counters
from runners.readers.registry import reader
from runners.serve.attached_server import KEY_WANTED, MODELS, NO_KEY


@dataclass(frozen=True)
class Identity:
    """A server that runs already. found_by: what its engine was recognised by. counters: of its /metrics; None where
    there is none that the engine's reader knows. models: all that it serves, `model` the first or the one asked for.
    """

    url: str
    engine: str
    found_by: str
    model: str
    models: tuple[str, ...]
    facts: ServerFacts
    counters: Counters | None


def identify(url: str, headers: Mapping[str, str], kind: str | None = None, model: str | None = None) -> Identity:
    """Ask the server at `url` (without /v1). kind: its engine, where the caller knows it; model: one of its models.

    UserError when nothing answers, a key is wanted, the model is not served there or the engine is not recognised.
    """
    with httpx.Client(headers=dict(headers), timeout=10, trust_env=False) as client:
        served = _models(client, url)
        metrics = _text(client, f"{url}/metrics")
        name, found_by = (kind, "--engine") if kind else _engine(client, url, served, metrics)
        module = engine(name)
        facts = _facts(client, url, module)
    names = tuple(one_line(str(m["id"])) for m in served if m.get("id"))
    if model is not None and names and model not in names:
        raise UserError(f"{url} serves no model `{model}`; it serves {', '.join(names)}.")
    if model is None and not names:
        raise UserError(f"{url}{MODELS} lists no model; name the one to ask for with --model.")
    counters = _counters(name, metrics)
    length = next((m["max_model_len"] for m in served if isinstance(m.get("max_model_len"), int)), None)
    if counters is not None and module.counters_in_metrics and facts.drafts is None:
        # An engine shows positions only where it drafts; counters may stand at 0 elsewhere.
        shown = bool(counters.drafted) or counters.accepted_per_position is not None
        facts = replace(facts, drafts=True if shown else None)
        facts = replace(facts, k=facts.k or len(counters.accepted_per_position or []) or None)
    facts = replace(facts, context_length=facts.context_length or length)
    return Identity(url, name, found_by, model or names[0], names, facts, counters)


def _models(client: httpx.Client, url: str) -> list[dict[str, Any]]:
    """What /v1/models lists; empty where it lists nothing."""
    try:
        response = http.get(client, url + MODELS)
    except httpx.TimeoutException as error:
        raise UserError(f"{url} does not answer within 10 s; wait until the server is ready, or look at it.") from error
    except (httpx.RequestError, httpx.InvalidURL) as error:
        raise UserError(f"No server answers at {url}; start it, or correct the address.") from error
    if response.status in NO_KEY:
        raise UserError(f"{url} answers {response.status}: {KEY_WANTED}.")
    if response.status >= 500:
        raise UserError(f"{url}{MODELS} answers {response.status}; wait until the server is ready.")
    found = _json_of(response)
    listed = found.get("data") if isinstance(found, dict) else None
    return [m for m in listed if isinstance(m, dict)] if isinstance(listed, list) else []


def _engine(client: httpx.Client, url: str, served: list[dict[str, Any]], metrics: str) -> tuple[str, str]:
    """(engine, what it was recognised by): the owner of its models, its own version, or the names of its metrics."""
    known = all_engines()
    for owner in (str(m.get("owned_by", "")).lower() for m in served):
        if owner in known:
            return owner, f"{MODELS} (owned_by {owner})"
    for name, found in known.items():
        path, key = found.version_at
        answer = _json(client, url + path)
        if isinstance(answer, dict) and answer.get(key):
            return name, path
    for name in known:
        if any(line.startswith(f"{name}:") for line in metrics.splitlines()):
            return name, "/metrics"
    raise UserError(f"The engine at {url} was not recognised; name it with --engine ({', '.join(known)}).")


def _facts(client: httpx.Client, url: str, module: Engine) -> ServerFacts:
    answers = dict(_answers(client, url, module))
    try:
        found = module.facts(answers)
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError):
        found = ServerFacts()  # answers of another form tell nothing
    found = _possible(found)
    path, key = module.version_at
    if found.version is None:
        answer = answers.get(path) or _json(client, url + path)
        version = answer.get(key) if isinstance(answer, dict) else None
        found = replace(found, version=one_line(str(version)) if version else None)
    return found


def _possible(found: ServerFacts) -> ServerFacts:
    """What can be true of the facts: a server may answer anything in the place of a number or a name."""
    facts: dict[str, Any] = {"drafts": found.drafts if isinstance(found.drafts, bool) else None}
    for name in ("context_length", "max_running_requests", "k"):
        count = getattr(found, name)
        facts[name] = count if isinstance(count, int) and not isinstance(count, bool) and count >= 1 else None
    for name in ("version", "method"):
        word = getattr(found, name)
        facts[name] = one_line(str(word)) if isinstance(word, str | int) else None
    return ServerFacts(**facts)


def _answers(client: httpx.Client, url: str, module: Engine) -> Iterator[tuple[str, Any]]:
    for path in module.facts_at:
        answer = _json(client, url + path)
        if answer is not None:
            yield path, answer


def _counters(kind: str, metrics: str) -> Counters | None:
    try:
        found: Counters = reader(kind).read_counters(metrics)
    except UserError:  # another program's page
        return None
    return found if (found.running, found.output_tokens) != (None, None) else None


def _text(client: httpx.Client, url: str) -> str:
    try:
        response = http.get(client, url)
    except (httpx.HTTPError, httpx.InvalidURL):
        return ""
    return response.text if response.status == 200 else ""


def _json(client: httpx.Client, url: str) -> Any:
    try:
        response = http.get(client, url)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    return _json_of(response) if response.status == 200 else None


def _json_of(response: http.Reply) -> Any:
    try:
        return response.json()
    except ValueError:
        return None
