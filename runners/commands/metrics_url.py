"""The /metrics of a running server, fetched by its address."""

import argparse
import os
import time

import httpx

from runners.core.errors import UserError
from runners.engines import http
from runners.readers.sources import Source

TIMEOUT = 10.0  # seconds


def is_url(word: str) -> bool:
    """Whether a word of the command line is an address."""
    return word.startswith(("http://", "https://"))


def address(url: str) -> str:
    """The address of /metrics for what people give: with or without it, or with the /v1 of the OpenAI interface."""
    if not is_url(url):
        raise UserError(f"{url} must be an address such as http://localhost:8000; begin it with http:// or https://.")
    plain = url.split("#")[0].rstrip("/")
    host, slash, path = plain.partition("://")[2].partition("/")
    if not host:
        raise UserError(f"{url} must name a host, as http://localhost:8000 does.")
    if not slash or path == "v1":
        return plain.removesuffix("/v1") + "/metrics"
    return plain


def shown(where: str) -> str:
    """An address as it may be printed: without a user's name and password, and without a query."""
    scheme, _, rest = where.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def client(headers: dict[str, str] | None = None) -> httpx.Client:
    """A client for one or many polls."""
    return httpx.Client(timeout=TIMEOUT, headers=headers, trust_env=False, follow_redirects=True)


def fetch(polls: httpx.Client, url: str) -> Source:
    """The text at an address, with the time at which it was asked for. UserError when there is none."""
    where = address(url)
    name = shown(where)
    at = time.time()
    try:
        answer = http.get(polls, where)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UserError(f"{name} does not answer ({error or type(error).__name__}); check host and port.") from error
    if answer.status in (401, 403):
        raise UserError(f"{name} asks for a key ({answer.status}); give it with --api-key-env or --header.")
    if answer.status != 200:
        raise UserError(
            f"{name} answers {answer.status}; give the address of /metrics, and switch metrics on where an "
            "engine needs it (SGLang: --enable-metrics, llama.cpp: --metrics)."
        )
    return Source(name, kept=answer.text, at=at)


def source(url: str, headers: dict[str, str] | None = None) -> Source:
    """`fetch`, once."""
    with client(headers) as polls:
        return fetch(polls, url)


def headers(args: argparse.Namespace) -> dict[str, str]:
    """The headers of `--header` and `--api-key-env`. UserError when one is malformed or the variable is empty."""
    found = {}
    for header in args.header or []:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise UserError("--header must be of the form 'Name: value'.")
        found[name.strip()] = value.strip()
    if args.api_key_env:
        key = os.environ.get(args.api_key_env)
        if not key:
            raise UserError(f"--api-key-env: the environment variable {args.api_key_env} must hold the key; set it.")
        found["Authorization"] = f"Bearer {key}"
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a server may ask of whoever reads its /metrics."""
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable with the key of a server's address")
    parser.add_argument("--header", action="append", metavar="'NAME: VALUE'", help="sent to a server's address")
